"""The data sets that tasks know by name, with sizes and sha256 of the authors' own files."""

from regard.datasets.files import Dataset, Extraction, File

MULTI30K_ADDRESS = (
    "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1"
)
MULTI30K_FILES = (
    ("train.en.gz", 568929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
    ("train.de.gz", 637044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
    ("train.fr.gz", 604242, "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c"),
    ("val.en.gz", 21650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
    ("val.de.gz", 24681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
    ("val.fr.gz", 23001, "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9"),
    ("test_2016_flickr.en.gz", 21077, "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
    ("test_2016_flickr.de.gz", 22890, "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
    ("test_2016_flickr.fr.gz", 22310, "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"),
    ("test_2017_flickr.en.gz", 19138, "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074"),
    ("test_2017_flickr.de.gz", 21471, "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee"),
    ("test_2017_flickr.fr.gz", 20434, "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496"),
    ("tok/train.lc.norm.tok.en", 1837696, "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"),
    ("tok/train.lc.norm.tok.de", 2150008, "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"),
    ("tok/train.lc.norm.tok.fr", 2235588, "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1"),
    ("tok/val.lc.norm.tok.en", 64608, "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"),
    ("tok/val.lc.norm.tok.de", 77273, "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"),
    ("tok/val.lc.norm.tok.fr", 78242, "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a"),
    ("tok/test_2016_flickr.lc.norm.tok.en", 63307, "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"),
    ("tok/test_2016_flickr.lc.norm.tok.de", 71917, "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"),
    ("tok/test_2016_flickr.lc.norm.tok.fr", 76394, "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836"),
    ("tok/test_2017_flickr.lc.norm.tok.en", 56123, "c9d1dfd7a26add989382e534af235af9f0f658b2a30e7eb0efdaf142496ee54f"),
    ("tok/test_2017_flickr.lc.norm.tok.de", 65228, "02067e4a9402786a4fcb8c1b6f4307e4a5073ced64800abead5273b54f5f31f6"),
    ("tok/test_2017_flickr.lc.norm.tok.fr", 69537, "c0583117a47b31e8a6c6a97cfe8de153e462074668f4e994764fcc80b21d33b4"),
)
MNIST_ADDRESS = "http://yann.lecun.com/exdb/mnist"
MNIST_FILES = (
    ("train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    ("train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    ("t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    ("t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)
SQUAD_ADDRESS = "https://rajpurkar.github.io/SQuAD-explorer/dataset"
SQUAD_FILES = (
    ("train-v1.1.json", 30288272, "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955"),
    ("dev-v1.1.json", 4854279, "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9"),
)
FSDD_ADDRESS = (
    "https://github.com/Jakobovski/free-spoken-digit-dataset/archive/26eb9aaf76e81b692f806f9140c2d2777410d7a1.zip"
)
FSDD_SHA256 = "1801eae019c063377d98f831d3f93574f259475df7332bb0e3d1b080fb5e6959"
FSDD_RECORDINGS = Extraction("*/recordings/*.wav", "recordings", count=3000, sha256=FSDD_SHA256)
FLICKR8K_ADDRESS = "http://nlp.cs.illinois.edu/HockenmaierGroup/Framing_Image_Description/Flickr8k_text.zip"
TATOEBA_ADDRESS = "https://www.manythings.org/anki"
GLOVE_ADDRESS = "https://nlp.stanford.edu/data/glove.6B.zip"
GLOVE_SHA256 = "617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb"


def build_multi30k_address(name: str) -> str:
    """Return the address of a file: tokenized sentences are in the folder `tok`, plain ones in `raw`."""
    return f"{MULTI30K_ADDRESS}/{name if name.startswith('tok/') else f'raw/{name}'}"


def list_files(address: str, files: tuple[tuple[str, int, str], ...]) -> tuple[File, ...]:
    """Return files of one address from their names, sizes and sha256."""
    return tuple(File(name, f"{address}/{name}", size, sha256) for name, size, sha256 in files)


DATASETS = (
    Dataset(
        "multi30k",
        "captions of images in English, German and French (Elliott et al. 2016)",
        "for non-commercial research and education; derived from Flickr30k",
        "https://github.com/multi30k/dataset",
        tuple(File(name, build_multi30k_address(name), size, sha256) for name, size, sha256 in MULTI30K_FILES),
    ),
    Dataset(
        "tatoeba",
        "sentences in English with their translations into French and Mandarin (Tatoeba, ManyThings)",
        "CC BY 2.0 FR; attribute tatoeba.org and manythings.org/anki",
        "https://www.manythings.org/anki/",
        tuple(
            File(f"{code}-eng.zip", f"{TATOEBA_ADDRESS}/{code}-eng.zip", extraction=Extraction(f"{code}.txt", count=1))
            for code in ("fra", "cmn")
        ),
        notes="the authors add sentences now and then: there is no sum to compare with",
    ),
    Dataset(
        "mnist",
        "handwritten digits, 28 × 28 (LeCun, Cortes and Burges)",
        "usually stated as CC BY-SA 3.0",
        "http://yann.lecun.com/exdb/mnist/",
        list_files(MNIST_ADDRESS, MNIST_FILES),
        notes="where the authors' server refuses, give another with --mirror; the sums decide",
    ),
    Dataset(
        "fsdd",
        "spoken digits of six speakers, 8 kHz (Free Spoken Digit Dataset, Jackson et al.)",
        "CC BY-SA 4.0",
        "https://github.com/Jakobovski/free-spoken-digit-dataset",
        (File("fsdd.zip", FSDD_ADDRESS, extraction=FSDD_RECORDINGS),),
    ),
    Dataset(
        "flickr8k",
        "five captions for each of 8,000 photographs, and how they are split (Hodosh et al. 2013); no photographs",
        "for non-commercial research and education; the photographs are their photographers'",
        "https://hockenmaier.cs.illinois.edu/8k-pictures.html",
        (File("Flickr8k_text.zip", FLICKR8K_ADDRESS, extraction=Extraction("*Flickr*8k.*.txt")),),
        notes="no sum is known for this file: its own is written down at the first download",
    ),
    Dataset(
        "squad",
        "questions with answers in paragraphs of Wikipedia (SQuAD 1.1, Rajpurkar et al. 2016)",
        "CC BY-SA 4.0",
        "https://rajpurkar.github.io/SQuAD-explorer/",
        list_files(SQUAD_ADDRESS, SQUAD_FILES),
    ),
    Dataset(
        "glove",
        "vectors of 400,000 words, from 6 billion words of English (Pennington et al. 2014)",
        "PDDL 1.0 (public domain)",
        "https://nlp.stanford.edu/projects/glove/",
        (File("glove.6B.zip", GLOVE_ADDRESS, 862182613, GLOVE_SHA256, Extraction("glove.6B.100d.txt", count=1)),),
    ),
)
DATASETS_BY_NAME = {dataset.name: dataset for dataset in DATASETS}
