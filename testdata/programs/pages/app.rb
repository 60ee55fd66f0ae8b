# The program of docs/ruby.md: a shop that keeps sessions, and makes methods without end.
class User
end

class Item
end

class Session
  def initialize
    @basket = [Item.new]
  end
end

class Server
  def handle(items)
    items.each do |item|
      puts "ready"
      $stdout.flush
      $stdin.gets
    end
  end
end

module App
  USERS = Array.new(3000) { User.new }
  SESSIONS = { "anna" => Session.new }
end

module BigModule; end
# Without a name for the file, Ruby writes "(eval)" or "(eval at app.rb:30)", by its version.
2000.times { |i| BigModule.module_eval("def generated_#{i}; [1].each { |n| n }; end", "(eval)") }
Server.new.handle(["name"])
