# The program of docs/perl.md: a cache of entries.
package Entry;
sub new { return bless { name => $_[1] }, $_[0] }

package main;
our $app = { cache => { map { ("user:$_" => Entry->new("user $_")) } 1 .. 2000 } };

sub work {
	my ($entry) = @_;
	$| = 1;
	print "ready\n";
	return scalar <STDIN>;
}
work($app->{cache}{"user:17"});
