"""serve.py DIR [ranges]: a web server on a free port, which it prints: Python's
own, which ignores range requests, or RangeHTTPServer, which knows them."""

import functools
import http.server
import sys

from RangeHTTPServer import RangeRequestHandler

base = RangeRequestHandler if sys.argv[2:] == ["ranges"] else http.server.SimpleHTTPRequestHandler


class Handler(base):
    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):  # a client that hangs up is none
        pass


server = Server(("127.0.0.1", 0), functools.partial(Handler, directory=sys.argv[1]))
print(server.server_address[1], flush=True)
server.serve_forever()
