# The program of docs/crystal.md: a server that keeps sessions.
class Session
  def initialize(@name : String)
    @items = ["a", "b"]
  end
end

SESSIONS = Hash(String, Session).new
2000.times { |i| SESSIONS["user #{i}"] = Session.new("name #{i}") }
puts "ready"
STDOUT.flush
STDIN.gets
