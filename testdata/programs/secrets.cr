# Has the secrets of a file, one a line in hexadecimal, in objects of all kinds: as bytes, texts,
# numbers, keys and what blocks capture. Writes "ready", and waits.

class Account
  property next : Account?
  @maker : Proc(UInt64)

  def initialize(@token : Bytes, @name : String, number : UInt64, @tags : Array(UInt64),
                 @next : Account?)
    @number = number
    @keys = {@name => number}
    keys = @keys
    @maker = ->{ number + keys.size.to_u64 }
  end

  def name
    @name
  end
end

def number_of(secret : Bytes)
  secret[0, 8].reduce(0_u64) { |number, byte| number << 8 | byte }
end

class Holder
  class_property accounts = Hash(String, Account).new
  class_property queue = Deque(String).new
  class_property last : Account?
end

def plant(path)
  File.each_line(path) do |line|
    secret = line.hexbytes
    number = number_of(secret)
    last = Account.new(secret, String.new(secret), number, [number, number ^ 1], Holder.last)
    Holder.last = last
    Holder.accounts[line] = last
    Holder.queue << line + "!"
    Account.new(secret.dup, line.dup, number, [number], nil) # garbage
  end
end

plant(ARGV[0])
secret = Holder.queue.first
spawn(name: "waiter") { sleep 1.hour; puts secret }
Fiber.yield
puts "ready"
STDOUT.flush
sleep
