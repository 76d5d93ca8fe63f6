"""A server that changes its answers on purpose: ``trawl serve --perturb``."""

from __future__ import annotations

import os
import unittest

from trawl_client import Perturbed, TrawlClient

URL = os.environ.get("PERTURBED_URL", "")


@unittest.skipUnless(URL, "PERTURBED_URL is not set: the server of the peer test")
class TestPerturbed(unittest.TestCase):
    """Answers with one distractor, of a request that is held back for a millisecond."""

    def test_results_say_what_the_server_did(self) -> None:
        with TrawlClient(URL) as client:
            for response in (client.search(["a bridge"], k=4), client.search(["a bridge"], k=4, fuse="rrf")):
                (result,) = response
                self.assertEqual(result.perturbed, Perturbed(distractors=1, delay_ms=1))
                assert result.certificate is not None
                self.assertFalse(result.certificate.exact)
                hits = result.hits if response.hits is None else response.hits
                self.assertEqual([hit.distractor for hit in hits].count(True), 1)
