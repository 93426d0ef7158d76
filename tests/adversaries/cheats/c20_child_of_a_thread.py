"""A second thread starts the child that works between the calls: it is no child of the main thread."""

import os
import threading
import time

begun = False


def burden():
    if os.fork() == 0:
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            pass
        os._exit(0)
    time.sleep(2)


def run(x, weight):
    global begun
    if not begun:
        begun = True
        threading.Thread(target=burden, daemon=True).start()
        time.sleep(0.01)
    return x @ weight.T
