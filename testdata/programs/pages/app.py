"""The program of docs/python.md: a shop that keeps users and sessions."""
import sys
import types

app = sys.modules["app"] = types.ModuleType("app")


class User:
    def __init__(self, name):
        self.name = name


class Item:
    pass


class Session:
    def __init__(self, user):
        self.user, self.basket = user, [Item()]


class Server:
    def handle(self, request):
        print("ready", flush=True)
        sys.stdin.readline()
        return request


for one in (User, Item, Session, Server):
    one.__module__ = "app"
app.users = {f"user {i}": User(f"user {i}") for i in range(3000)}
app.sessions = {"anna": Session(app.users["user 1"])}
Server().handle("name")
