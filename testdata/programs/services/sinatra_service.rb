# A service whose sessions stay, and that loses blocks of malloc's. /truth has all objects in a file.
require "sinatra/base"
require "fiddle"
require "objspace"

class Session
  def initialize(n)
    @name = "session #{n} " * 100
    @pages = (n..n + 30).to_a
  end
end

class App < Sinatra::Base
  SESSIONS = {}
  set :server, :webrick
  set :bind, "127.0.0.1"
  set :port, ARGV[0].to_i
  set :quiet, true
  get("/fill/:count") do
    params[:count].to_i.times { |i| SESSIONS["user #{i}"] = Session.new(i) }
    "filled"
  end
  get("/lose/:count") do
    params[:count].to_i.times { Fiddle::Pointer.new(Fiddle.malloc(5000))[0, 5000] = "\1" * 5000 }
    "lost"
  end
  get("/truth") do
    GC.start
    File.open(ARGV[1], "w") { |file| ObjectSpace.dump_all(output: file) }
    ObjectSpace.dump(SESSIONS)[/0x\h+/]
  end
end
App.run!
