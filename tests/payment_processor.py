"""A payment processor for the tests: localstripe, a third-party fake of Stripe.

It prints the port it listens on at 127.0.0.1, and ends when its standard input is closed.

localstripe refuses unknown parameters. This adds those of a destination charge and returns
them with the payment, like Stripe.
"""

import asyncio
import sys
import threading

from aiohttp import web
from localstripe import resources, server


def know_destination_charges():
    create = resources.PaymentIntent.__init__

    def with_destination(
        self,
        automatic_payment_methods=None,
        transfer_data=None,
        application_fee_amount=None,
        receipt_email=None,
        **known
    ):
        if automatic_payment_methods != {"enabled": "true"}:
            raise resources.UserError(400, "Bad request")
        create(self, **known)
        self.transfer_data = transfer_data
        self.application_fee_amount = application_fee_amount
        self.receipt_email = receipt_email

    resources.PaymentIntent.__init__ = with_destination


def end_with_input():
    sys.stdin.read()
    loop.call_soon_threadsafe(loop.stop)


async def listen():
    runner = web.AppRunner(server.app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)


# State is not kept between two runs.
resources.store.dump_to_disk = lambda: None
know_destination_charges()
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
loop.run_until_complete(listen())
threading.Thread(target=end_with_input, daemon=True).start()
loop.run_forever()
