# Keeps the secrets of a file, a line of hexadecimal digits each, in all kinds of objects.
require "set"
require "stringio"

class Account
  def initialize(secret)
    @secret = secret
    @digits = secret.unpack1("H*")
    @number = secret.unpack1("q")
  end
end

Pair = Struct.new(:left, :right)

def wait(secret)
  text = secret.b + " in a fiber"
  Fiber.yield text
  [text, secret]
end

def keep(secret)
  number, real = secret.unpack1("q"), secret.unpack1("d")
  text = secret.dup.force_encoding("UTF-8")
  $by_text[secret + "!"] = secret
  $by_text[secret.b.to_sym] = { secret => number, number => real, secret.to_sym => [secret[0, 20]] }
  $by_number[number] = [real, number, -number, number * number, Complex(number, real)]
  $by_number[number.to_s] = Rational(number, 3)
  $accounts << Account.new(secret) << Pair.new(secret + "?", number) << (number..number + 5)
  $texts << text << text.encode("UTF-16LE", "BINARY", invalid: :replace, undef: :replace)
  $wide << secret.unpack("C*").pack("U*").encode("UTF-32LE")
  $closures << proc { |more| [text, more, secret] } << method(:keep).unbind << text.each_char
  return if $by_number.size % 40 != 0

  $fibers << Fiber.new { |one| wait(one) }
  $fibers.last.resume(secret)
  $strings << StringIO.new(secret + "read") << [number, real].pack("qd") << "#{secret.b} again"
  $errors << ArgumentError.new(secret)
  $matches << secret.b.match(/.{8,}/mn)
  $patterns << Regexp.new(Regexp.escape(secret.unpack1("H*")))
  with = +"variables"
  with.instance_variable_set(:@extra, [secret, number])
  $accounts << with
end

def hold(secrets, *more, key: secrets.last)
  within = secrets.map { |secret| secret + " on the stack" }
  copy = <<~TEXT
    #{secrets[0].unpack1("H*")} in a heredoc
  TEXT
  puts "ready"
  $stdout.flush
  $stdin.read
  [within, copy, more, key]
end

$by_text, $by_number, $accounts, $texts, $wide = {}, {}, [], Set.new, []
$closures, $fibers, $strings, $errors, $matches, $patterns = [], [], [], [], [], []
secrets = File.readlines(ARGV[0], chomp: true).map { |line| [line].pack("H*") }
secrets.each { |secret| keep(secret) }
$threads = secrets.each_slice(250).map do |some|
  Thread.new do
    Thread.current[:mine] = some
    Thread.current.thread_variable_set(:ours, some.map(&:reverse))
    Thread.current[:number] = some[0].unpack1("q")
    sleep
  end
end
$file = File.open(ARGV[0])
3.times { $file.gets }
$output = IO.pipe
$output[1].sync = false
$output[1].write(secrets.first)
ENV["SECRET"] = secrets[300].unpack1("H*")
hold(secrets, secrets[1], secrets[2].unpack1("q"), key: secrets[3])
