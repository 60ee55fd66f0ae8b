"""A service that caches pages as Django does, and loses blocks of malloc's. /truth says what they take."""
import ctypes
import sys
from wsgiref.simple_server import make_server

from django.conf import settings
from django.core.cache import cache
from django.core.cache.backends import locmem
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

settings.configure(
    ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="secret",
    CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache",
                        "TIMEOUT": None, "OPTIONS": {"MAX_ENTRIES": 1000000}}})
C = ctypes.CDLL(None)
C.malloc.restype = ctypes.c_void_p


def fill(request, count):
    for number in range(count):
        cache.set(f"page-{number}", {"title": f"page {number}", "body": "<p>of a page" * 200})
    return HttpResponse("filled")


def lose(request, count):
    for _ in range(count):
        ctypes.memset(C.malloc(5000), 1, 5000)
    return HttpResponse("lost")


def truth(request):
    # Keys are shared with the table of times.
    pages = locmem._caches[""]
    return HttpResponse(str(sys.getsizeof(pages) + sum(map(sys.getsizeof, pages.values()))))


urlpatterns = [path("fill/<int:count>", fill), path("lose/<int:count>", lose), path("truth", truth)]
server = make_server("127.0.0.1", 0, get_wsgi_application())
print(server.server_port)
print("ready", flush=True)
server.serve_forever()
