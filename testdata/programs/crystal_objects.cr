# Makes objects of every kind that Crystal has, writes down what they are, and
# waits to be dumped.
#
#	crystal_objects TRUTH [BYTES]		so many for what each Scribble said
#
# Each line of the file TRUTH is one of
#
#	object ADDRESS TYPE-ID INSTANCE-SIZE NAME
#	text ADDRESS BYTES			what a string holds
#	field ADDRESS OFFSET NAME VALUE		of an object: a number, or of a string the text
#	made LINE NAME				a line in which objects of a class are made
#	buffer ADDRESS KIND OWNER		memory without a type id
#	bound ADDRESS NAME			an object held by a method's Proc only
#	stacked ADDRESS				held by the stack of a fiber only
#	fiber ADDRESS STACK-END NAME		one that waits
#	count NUMBER NAME			all instances that there are
#	ready
#
# Addresses are hexadecimal. Of the classes that are counted, nothing is ever
# dropped.

{% if compare_versions(Crystal::VERSION, "1.11.0") >= 0 %}
  PAUSE = 1.hour
{% else %}
  PAUSE = 3600
{% end %}

class Truth
  def initialize(path)
    @file = File.new(path, "w")
  end

  # T is what the compiler knows it to be: exactly its class.
  def object(object : T) : T forall T
    @file << "object " << object.object_id.to_s(16) << ' '
    @file << object.crystal_type_id << ' ' << instance_sizeof(T) << ' '
    @file << T.name << '\n'
    object
  end

  def text(string : String) : String
    @file << "text " << string.object_id.to_s(16) << ' '
    @file << string.bytesize << '\n'
    string
  end

  def field(object, offset : Int, name : String, value) : Nil
    @file << "field " << object.object_id.to_s(16) << ' ' << offset << ' '
    @file << name << ' ' << value << '\n'
  end

  # By whom the constructor in the caller's line was called.
  def made(object : T, line = __LINE__) : T forall T
    @file << "made " << line << ' ' << T.name << '\n'
    object(object)
  end

  def buffer(address : UInt64, kind : String, owner) : Nil
    return if address == 0
    @file << "buffer " << address.to_s(16) << ' ' << kind << ' '
    @file << owner.to_s(16) << '\n'
  end

  def bound(object : T) : T forall T
    @file << "bound " << object.object_id.to_s(16) << ' ' << T.name << '\n'
    object
  end

  def stacked(address : UInt64) : Nil
    @file << "stacked " << address.to_s(16) << '\n'
  end

  def held(address : UInt64, owner : String, offset : Int, member : String) : Nil
    @file << "held " << address.to_s(16) << ' ' << offset << ' '
    @file << member << ' ' << owner << '\n'
  end

  def fiber(fiber : Fiber) : Nil
    stack_end =
      {% if Fiber.instance_vars.any? { |variable| variable.name == "stack_bottom" } %}
        fiber.@stack_bottom.address
      {% else %}
        fiber.@stack.bottom.address
      {% end %}
    @file << "fiber " << fiber.object_id.to_s(16) << ' '
    @file << stack_end.to_s(16) << ' ' << (fiber.name || "-") << '\n'
  end

  def count(number : Int, name : String) : Nil
    @file << "count " << number << ' ' << name << '\n'
  end

  def finish : Nil
    @file << "ready\n"
    @file.close
  end
end

module Named
  getter name : String

  abstract def noise : String
end

abstract class Animal
  include Named

  def initialize(@name : String, @age : Int32)
  end

  abstract def noise : String
end

class Dog < Animal
  @friends = [] of Animal

  def noise : String
    "woof"
  end

  def meet(other : Animal)
    @friends << other
  end

  def buffer
    @friends.to_unsafe.address
  end

  def friends
    @friends
  end
end

class Puppy < Dog
  @tricks = {} of String => Int32
  @weight = 1.5

  def noise : String
    "yip"
  end
end

class Cat < Animal
  property prey : Mouse?

  def noise : String
    "meow"
  end
end

class Mouse
  def initialize(@weight : Float64)
  end
end

# The same size and shape as Mouse: only the type id tells them apart.
class Coin
  def initialize(@value : Float64)
  end
end

class Parcel(T)
  getter content : T

  def initialize(@content : T)
  end
end

class Pair(A, B)
  def initialize(@first : A, @second : B)
  end
end

module Zoo
  class Keeper
    property callback : Proc(Int32, Int32)?

    def initialize(@animals : Array(Animal), @by_name : Hash(String, Animal))
    end

    class Badge
      def initialize(@number : UInt64, @position : Point)
      end
    end
  end
end

struct Point
  def initialize(@x : Int32, @y : Int32)
  end
end

class Empty
end

class Bell
  def initialize(@tone : Int32, @name : String)
  end

  def ring(times : Int32) : Int32
    @tone * times + @name.size
  end
end

# All that the program made, so that nothing of it is collected.
class Everything
  getter dogs = [] of Dog
  getter puppies = [] of Puppy
  getter cats = [] of Cat
  getter mice = [] of Mouse
  getter coins = [] of Coin
  getter parcels = [] of Parcel(Int32)
  getter text_parcels = [] of Parcel(String)
  getter pairs = [] of Pair(Int32, String)
  getter keepers = [] of Zoo::Keeper
  getter badges = [] of Zoo::Keeper::Badge
  getter empties = [] of Empty
  getter numbers = [] of Array(Int32)
  getter tables = [] of Hash(String, Int32)
  getter sets = [] of Set(Int32)
  getter queues = [] of Deque(Mouse)
  getter procs = [] of Proc(Int32, Int32)
  getter strings = [] of String
  getter tuples = [] of NamedTuple(name: String, value: Int32)
  getter channels = [] of Channel(Mouse)
  getter fibers = [] of Fiber
  getter blocks = [] of Proc(Int32, Int32)
  getter rings = [] of Proc(Int32, Int32)
  getter scribbles = [] of Scribble
  getter low_numbers = [] of Array(Int32)
  getter low_pairs = [] of Array(Tuple(Int32, Mouse))
end

def make_animals(all, truth, count)
  count.times do |i|
    dog = truth.made(Dog.new("dog #{i}", i))
    truth.text(dog.name)
    truth.field(dog, offsetof(Dog, @age), "age", i)
    truth.field(dog, offsetof(Dog, @name), "name", dog.name)
    puppy = truth.made(Puppy.new("puppy #{i}", i))
    truth.field(puppy, offsetof(Puppy, @weight), "weight", 1.5)
    cat = truth.made(Cat.new("cat #{i}", i))
    3.times { dog.meet(puppy) }
    dog.meet(cat)
    truth.object(dog.friends)
    truth.buffer(dog.buffer, "CrystalArrayBuffer", dog.friends.object_id)
    mouse = truth.made(Mouse.new(i.to_f))
    cat.prey = mouse if i.odd?
    all.dogs << dog
    all.puppies << puppy
    all.cats << cat
    all.mice << mouse
    all.coins << truth.made(Coin.new(i / 2))
  end
end

def make_parcels(all, truth, count)
  count.times do |i|
    all.parcels << truth.made(Parcel(Int32).new(i))
    all.text_parcels << truth.made(Parcel(String).new("in a parcel #{i}"))
    all.pairs << truth.made(Pair(Int32, String).new(i, "second #{i}"))
    all.badges << truth.made(Zoo::Keeper::Badge.new(i.to_u64, Point.new(i, -i)))
    all.empties << truth.made(Empty.new)
    all.tuples << {name: "tuple #{i}", value: i}
  end
end

def make_containers(all, truth, count)
  count.times do |i|
    numbers = truth.object(Array(Int32).new(i + 1) { |j| i * j })
    truth.buffer(numbers.to_unsafe.address, "CrystalArrayBuffer",
      numbers.object_id)
    numbers.shift if i % 3 == 2
    all.numbers << numbers
    table = truth.object({} of String => Int32)
    (i + 1).times { |j| table["key #{j}"] = j }
    table.delete("key 1") if i % 4 == 1
    truth.buffer(table.@entries.address, "CrystalHashEntries", table.object_id)
    truth.buffer(table.@indices.address, "CrystalHashIndices", table.object_id)
    all.tables << table
    set = Set(Int32).new
    (i % 30).times { |j| set << j * i }
    hash = truth.object(set.@hash)
    truth.buffer(hash.@entries.address, "CrystalHashEntries", hash.object_id)
    all.sets << set
    queue = truth.made(Deque(Mouse).new)
    (i % 9).times { queue << all.mice[i % all.mice.size] }
    queue.shift? if i % 2 == 1
    truth.buffer(queue.@buffer.address, "CrystalDequeBuffer", queue.object_id)
    all.queues << queue
  end
end

def make_procs(all, truth, count)
  count.times do |i|
    mouse = all.mice[i % all.mice.size]
    sum = i
    all.procs << ->(x : Int32) { sum += x; mouse.object_id.to_i32! + sum }
  end
  all.procs.each do |proc|
    truth.buffer(proc.closure_data.address, "CrystalClosure", 0_u64)
  end
end

# What these capture begins with a number that may be a type's.
@[NoInline]
def capture(number : Int32)
  ->(x : Int32) { number += x }
end

@[NoInline]
def capture(number : Int32, a : Mouse)
  ->(x : Int32) { number += x; number + a.object_id.to_i32! }
end

@[NoInline]
def capture(number : Int32, a : Mouse, b : Coin)
  ->(x : Int32) { number += x; number + (a.object_id ^ b.object_id).to_i32! }
end

@[NoInline]
def capture(number : Int32, a : Mouse, b : Coin, c : Dog, d : Cat)
  ->(x : Int32) do
    number += x
    number + (a.object_id ^ b.object_id ^ c.object_id ^ d.object_id).to_i32!
  end
end

@[NoInline]
def capture(number : Int32, a : Mouse, b : Coin, c : Dog, d : Cat,
            e : String, f : Puppy)
  ->(x : Int32) do
    number += x
    number + (a.object_id ^ b.object_id ^ c.object_id ^ d.object_id ^
              e.object_id ^ f.object_id).to_i32!
  end
end

def make_low_numbers(all, truth, count)
  mouse, coin, dog, cat = all.mice[0], all.coins[0], all.dogs[0], all.cats[0]
  (1..count).each do |i|
    all.blocks << capture(i)
    all.blocks << capture(i, mouse)
    all.blocks << capture(i, mouse, coin)
    all.blocks << capture(i, mouse, coin, dog, cat)
    all.blocks << capture(i, mouse, coin, dog, cat, dog.name, all.puppies[0])
    numbers = Array(Int32).new(i % 20 + 1) { i }
    all.low_numbers << truth.object(numbers)
    truth.buffer(numbers.to_unsafe.address, "CrystalArrayBuffer",
      numbers.object_id)
    pairs = Array(Tuple(Int32, Mouse)).new(i % 5 + 1) { {i, mouse} }
    all.low_pairs << truth.object(pairs)
    truth.buffer(pairs.to_unsafe.address, "CrystalArrayBuffer",
      pairs.object_id)
  end
  all.blocks.each do |block|
    truth.buffer(block.closure_data.address, "CrystalClosure", 0_u64)
  end
end

# What only a Pointer leads to has no class of its own.
class Scribble
  getter room : Pointer(UInt8)
  getter said : Pointer(UInt8)
  getter slice : Bytes
  getter pieces = [] of Bytes
  getter pages : Pointer(Pointer(UInt8))?
  getter memory = IO::Memory.new
  getter builder = String::Builder.new

  def initialize(line : String)
    @slice = Bytes.new(100)
    3.times { @pieces << Bytes.new(50) }
    @pages = Pointer(Pointer(UInt8)).malloc(2) { Pointer(UInt8).malloc(64) }
    @room = Pointer(UInt8).malloc(600)
    @said = Pointer(UInt8).malloc(SAID)
    @said.copy_from(line.to_unsafe, line.bytesize)
  end

  def tell(truth)
    truth.held(@room.address, "Scribble", offsetof(Scribble, @room), "room")
    truth.held(@said.address, "Scribble", offsetof(Scribble, @said), "said")
    truth.held(@slice.to_unsafe.address, "Scribble", offsetof(Scribble, @slice) + 8, "slice")
    @pieces.each { |piece| truth.held(piece.to_unsafe.address, "Array(Slice(UInt8))", 0, "") }
    @memory << "in memory"
    truth.held(@memory.@buffer.address, "IO::Memory", offsetof(IO::Memory, @buffer), "buffer")
    truth.held(@builder.@buffer.address, "String::Builder", offsetof(String::Builder, @buffer), "buffer")
    pages = @pages.not_nil!
    truth.held(pages.address, "Scribble", offsetof(Scribble, @pages) + 8, "pages")
    truth.held(pages[0].address, "Scribble", offsetof(Scribble, @pages) + 8, "pages[]")
  end
end

def make_scribbles(all, truth, count)
  count.times do |i|
    scribble = truth.made(Scribble.new("what was said in line #{i}"))
    scribble.tell(truth)
    all.scribbles << scribble
  end
end

def make_rings(all, truth, count)
  count.times do |i|
    bell = truth.bound(Bell.new(i, "bell"))
    all.rings << ->bell.ring(Int32)
  end
end

def make_keepers(all, truth)
  4.times do |i|
    animals = [] of Animal
    by_name = {} of String => Animal
    (all.dogs + all.cats).each_with_index do |animal, j|
      next unless j % 4 == i
      animals << animal
      by_name[animal.name] = animal
    end
    keeper = truth.made(Zoo::Keeper.new(animals, by_name))
    keeper.callback = all.procs[i]
    all.keepers << keeper
  end
end

@[NoInline]
def wait_deep(channel, truth, depth, seed)
  if depth > 0
    wait_deep(channel, truth, depth - 1, seed)
  else
    mouse = truth.made(Mouse.new(seed.to_f))
    truth.stacked(mouse.object_id)
    received = channel.receive
    puts received, mouse
  end
end

def make_fibers(all, truth, count)
  count.times do |i|
    channel = truth.made(Channel(Mouse).new)
    all.channels << channel
    all.fibers << spawn(name: "waiter-#{i}") do
      wait_deep(channel, truth, 10 * i, i)
    end
  end
  Fiber.yield
  all.fibers << spawn(name: "sleeper") { sleep PAUSE }
  all.fibers << spawn { sleep PAUSE }
  Fiber.yield
  all.fibers.each { |fiber| truth.fiber(truth.object(fiber)) }
end

@[NoInline]
def waste(count)
  count.times { |i| "garbage #{i} #{Parcel(Float64).new(i.to_f).content}" }
end

@[NoInline]
def make_all(all, truth, count, fibers)
  make_animals(all, truth, count)
  make_parcels(all, truth, count)
  make_containers(all, truth, count)
  make_procs(all, truth, count // 4)
  make_low_numbers(all, truth, LOW)
  make_rings(all, truth, COUNT)
  make_scribbles(all, truth, COUNT)
  make_keepers(all, truth)
  make_fibers(all, truth, fibers)
  strings = all.strings
  count.times { |i| strings << truth.text(truth.object("string " * (i % 50))) }
end

COUNT  = 200
LOW    = 300 # more than there are types
FIBERS =  10
SAID   = (ARGV[1]? || "1000").to_i

all = Everything.new
truth = Truth.new(ARGV[0])
make_all(all, truth, COUNT, FIBERS)
waste(1000)
GC.collect
truth.count(COUNT, "Dog")
truth.count(COUNT, "Puppy")
truth.count(COUNT, "Cat")
truth.count(COUNT + FIBERS, "Mouse")
truth.count(COUNT, "Coin")
truth.count(COUNT, "Parcel(Int32)")
truth.count(COUNT, "Parcel(String)")
truth.count(COUNT, "Pair(Int32, String)")
truth.count(COUNT, "Zoo::Keeper::Badge")
truth.count(COUNT, "Empty")
truth.count(COUNT, "Deque(Mouse)")
truth.count(4, "Zoo::Keeper")
truth.count(FIBERS, "Channel(Mouse)")
truth.count(LOW, "Array(Tuple(Int32, Mouse))")
truth.count(1, "Everything")
truth.count(1, "Truth")
truth.object(all)
truth.finish
sleep PAUSE
puts all.dogs.size, all.strings.size, all.channels.size, all.blocks.size
puts all.rings.size, all.scribbles.size, all.scribbles[0].said[0]
puts all.scribbles[0].room[0]
