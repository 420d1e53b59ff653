"""Published errors on the bAbI tasks, in percent, kind by kind: other stories than ours, of the same kinds.

Sukhbaatar et al. 2015, "End-To-End Memory Networks", table 1: 1,000 questions of each kind, three hops, position
encoding (PE). Other columns of that table are left out until they are compared with the paper.
"""

PUBLISHED_ERRORS = {
    "published, 1k: PE": (
        *(0.1, 21.6, 64.2, 3.8, 14.1, 7.9, 21.6, 12.6, 23.3, 17.4),
        *(4.3, 0.3, 9.9, 1.8, 0.0, 52.1, 50.1, 13.6, 87.4, 0.0),
    ),
}
