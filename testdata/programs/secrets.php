<?php
// Keeps the secrets of a file, a line of hexadecimal digits each, in all kinds of values.
class Account
{
	public static array $all = [];
	private ?string $text;
	public $number;
	public readonly array $more;

	public function __construct(public string $secret)
	{
		$this->text = bin2hex($secret);
		$this->number = unpack("P", $secret)[1];
		$this->more = [$this->text => $this->number, $this->number => $secret];
		self::$all[] = $this;
	}
}

function wait_in_generator(string $secret)
{
	$text = bin2hex($secret);
	$number = unpack("P", $secret)[1];
	yield $text;
	yield $number;
}

function keep(string $secret): void
{
	static $last = [];
	global $by_text, $by_bytes, $by_number, $kept, $storage, $fixed, $queue, $heap, $buffer;
	$text = bin2hex($secret);
	$number = unpack("P", $secret)[1];
	$account = new Account($secret);
	$dynamic = new stdClass;
	$dynamic->$text = $secret;
	$by_text[$text] = $secret;
	$by_bytes[$secret] = $account;
	$by_number[$number] = [$number, (float)$number, -$number];
	$storage[$account] = $text . "stored";
	$queue->enqueue(mb_convert_encoding_or_wide($text));
	$heap->insert($number);
	$fixed[count($kept)] = $number;
	$last[] = &$text;
	$_ENV["OF" . count($kept)] = $text;
	putenv("OF" . count($kept) . "=" . substr($text, 0, 60));
	$generator = wait_in_generator($secret);
	$generator->current();
	$fiber = new Fiber(function () use ($secret) {
		$here = bin2hex($secret) . "fiber";
		Fiber::suspend($here);
	});
	if (count($kept) % 10 == 0)
		$fiber->start();
	fwrite($buffer, $secret);
	$kept[] = [$dynamic, $generator, $fiber, fn () => $text, function () use ($number) {
		return $number;
	}, str_split($secret), new ArrayObject([$text]), strtoupper($text), WeakReference::create($account)];
}

function mb_convert_encoding_or_wide(string $text): string
{
	return implode("", array_map(fn ($letter) => $letter . "\0", str_split($text)));
}

function wait_for(array $queue): void
{
	$first = $queue[0];
	try {
		throw new RuntimeException($first);
	} catch (RuntimeException $error) {
		echo "ready\n";
		sleep(1000000);
	}
}

$by_text = $by_bytes = $by_number = $kept = [];
$storage = new SplObjectStorage;
$fixed = new SplFixedArray(1000);
$queue = new SplQueue;
$heap = new SplMinHeap;
$buffer = fopen("php://memory", "w+");
foreach (file($argv[1], FILE_IGNORE_NEW_LINES) as $line)
	keep(hex2bin($line));
wait_for(array_keys($by_text));
