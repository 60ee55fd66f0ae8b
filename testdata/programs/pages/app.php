<?php
// The program of docs/php.md: a cache of entries.
namespace App;

class Entry
{
	public $value = 1;
}

class Node
{
	public $next;
}

class Cache
{
	public $items = [];

	public function wait($name)
	{
		echo "ready\n";
		fgets(STDIN);
		return $name;
	}
}

$cache = new Cache();
$cache->items['user:17'] = new Entry();
$list = null;
for ($i = 0; $i < 4000; $i++) {
	$node = new Node();
	$node->next = $list;
	$list = $node;
}
$GLOBALS['list'] = $list;
$GLOBALS['cache'] = $cache;
$cache->wait('user:17');
