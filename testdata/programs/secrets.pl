# Keeps the secrets of a file, a line of hexadecimal digits each, in all kinds of values.
use strict;
use warnings;
use Encode ();
use Scalar::Util qw(weaken dualvar);
use constant LIMIT => 17;

package Account;

sub new
{
	my ($class, $secret) = @_;
	return bless {secret => $secret, text => unpack("H*", $secret)}, $class;
}

package Upper;

sub TIEHASH { return bless {}, shift }
sub STORE { $_[0]{$_[1]} = $_[2] }
sub FETCH { return $_[0]{$_[1]} }

package main;

our (%by_text, %by_bytes, %by_number, @kept, @queue, $last, %tied);
tie %tied, "Upper";
open(my $buffered, ">", "/dev/null") or die;

sub keep
{
	my ($secret) = @_;
	my $text = unpack("H*", $secret);
	my $number = unpack("q<", $secret);
	my $wide = Encode::encode("UTF-16LE", $text);
	my $account = Account->new($secret);
	my ($captured) = $text =~ /^(.{16,})$/;
	my $part = substr($secret, 1);
	my $again = $account;
	weaken($again);
	$by_text{$text} = $secret;
	$by_bytes{$secret} = $account;
	$by_number{$number} = [$number, $number + 0.5, -$number];
	$tied{$text . "tied"} = $secret;
	$ENV{"OF" . scalar @kept} = $text;
	push @queue, $wide, "$text\x{151}", dualvar($number, $text);
	pos($text) = 3;
	print $buffered $secret;
	$last = $text;
	push @kept, [
		sub { return $text . $number }, \substr($text, 2), $captured, $part, \$number,
		eval "sub { return '$text' }", $again, {%$account, $text => LIMIT},
		qr/$text/, [split(//, $secret)], lc($text), \\"$text"
	];
}

sub wait_for
{
	local $last = shift;
	my ($line) = @_;
	local $_ = $line;
	$| = 1;
	print "ready\n";
	sleep 1e6;
}

open(my $file, "<", $ARGV[0]) or die;
while (my $line = <$file>) {
	chomp $line;
	keep(pack("H*", $line));
}
close($file);
eval { die $kept[5][2] };
wait_for(@queue);
