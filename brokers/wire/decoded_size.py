"""The memory that a decoded message may take. Few bytes can become many objects: an empty struct of 3 bytes takes 350.

``decoded_bytes_max`` gives the limit for a message of a size. The codec adds up the weights of its arrays' elements,
and refuses a message that would take more. So a server can count a request by its size before it reads it.

Kafka's clients and brokers send nothing that reaches these limits. Cancelled reassignments come closest: 6 bytes become
310. A leader that asks for the ISRs of 50,000 partitions sends 1.4 MB or more, and each byte becomes 32.
"""

import sys
from collections.abc import Collection

MIB = 1024 * 1024
# A message may take 100 times its size. A large one may take 40 times its size and 4 MiB more.
FACTOR_MAX, LARGE_FACTOR_MAX = 100, 40
LARGE_EXTRA_BYTES = 4 * MIB
MESSAGE_BYTES_MAX = 256 * MIB

# In bytes. Kinds that are not listed are numbers: an object each, except the smallest, which Python shares.
_SHARED = {"bool": 0, "int8": 0}
_KINDS = _SHARED | {"uuid": 72, "string": 56, "bytes": 56, "records": 56}
_NUMBER = 32
ARRAY = sys.getsizeof([])
# Each element's place in its list, with what the list keeps free for more.
PLACE = 9


def decoded_bytes_max(size: int) -> int:
    """Return how many bytes of memory the objects in a message of ``size`` bytes may take."""
    return min(FACTOR_MAX * size, LARGE_FACTOR_MAX * size + LARGE_EXTRA_BYTES, MESSAGE_BYTES_MAX)


def weight_of_plain(kind: str) -> int:
    """Return how many bytes an object of a plain type takes, besides the characters of a text."""
    return _KINDS.get(kind, _NUMBER)


def weight_of_struct(names: Collection[str], inside: int) -> int:
    """Return how many bytes a struct with these fields takes, whose values take ``inside``."""
    return sys.getsizeof(dict.fromkeys(names)) + inside
