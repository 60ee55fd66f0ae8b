// A service whose sessions and pages stay. /truth has all objects in a file.
const express = require("express"), v8 = require("v8");
const app = express(), sessions = new Map(), pages = new Map();
class Session {
  constructor(n) {
    this.name = "session " + n;
    this.items = Array.from({ length: 50 }, (_, i) => ({ n: n * i, at: i }));
  }
}
app.get("/fill/:count", (request, response) => {
  for (let i = 0; i < Number(request.params.count); i++) {
    sessions.set("user " + i, new Session(i));
    pages.set("page " + i, Buffer.alloc(20000, "x"));
  }
  response.send("filled");
});
app.get("/truth", (request, response) => {
  v8.writeHeapSnapshot(process.argv[2]);
  response.send("written");
});
const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port + "\nready"));
