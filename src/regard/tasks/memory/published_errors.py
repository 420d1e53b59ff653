"""Published errors on the bAbI tasks, in percent, kind by kind: other stories than ours, of the same kinds.

Sukhbaatar et al. 2015, "End-To-End Memory Networks", table 1: 1,000 questions of each kind, three hops; PE is position
encoding, LS linear start, RN random noise; joint: one model for all kinds. With 10,000 questions of each kind: the
appendix there, as quoted by Henaff et al. 2017, table 2 (the best of many runs).
"""

PUBLISHED_ERRORS = {
    "published, 1k: PE": (
        *(0.1, 21.6, 64.2, 3.8, 14.1, 7.9, 21.6, 12.6, 23.3, 17.4),
        *(4.3, 0.3, 9.9, 1.8, 0.0, 52.1, 50.1, 13.6, 87.4, 0.0),
    ),
    "published, 1k: PE LS RN joint": (
        *(0.0, 11.4, 21.9, 13.4, 14.4, 2.8, 18.3, 9.3, 1.9, 6.5),
        *(0.3, 0.1, 0.2, 6.9, 0.0, 2.7, 40.4, 9.4, 88.0, 0.0),
    ),
    "published, 10k": (
        *(0.0, 0.3, 2.1, 0.0, 0.8, 0.1, 2.0, 0.9, 0.3, 0.0),
        *(0.0, 0.0, 0.0, 0.2, 0.0, 51.8, 18.6, 5.3, 2.3, 0.0),
    ),
}
PUBLISHED_MEANS = {"published, 1k: PE": 20.3, "published, 1k: PE LS RN joint": 12.4, "published, 10k": 4.2}
