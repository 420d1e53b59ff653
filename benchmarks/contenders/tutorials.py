"""What tutorials write around torch's own modules to translate."""

import warnings
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.contenders.text import PADDING
from benchmarks.contenders.translators import Shape

LONGEST = 512


class TutorialTransformer(nn.Module):
    """Around `nn.Transformer`."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.table = nn.Embedding(shape.vocabulary, shape.size)
        nn.init.normal_(self.table.weight, std=shape.size**-0.5)
        self.positions = nn.Parameter(torch.zeros(LONGEST, shape.size), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(shape.vocabulary))
        self.dropout = nn.Dropout(shape.dropout)
        stacks = {"num_encoder_layers": shape.layers, "num_decoder_layers": shape.layers}
        width = {"dim_feedforward": 2 * shape.size, "dropout": shape.dropout}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that norms first exclude nested tensors
            self.stack = nn.Transformer(shape.size, shape.heads, **stacks, **width, batch_first=True, norm_first=True)  # type: ignore[arg-type]

    def forward(self, source: Tensor, lengths: Tensor, said: Tensor) -> Tensor:
        """Return the scores of the next token after each given one."""
        later = torch.triu(torch.ones(said.shape[1], said.shape[1], dtype=torch.bool), 1)
        hidden = source == PADDING
        masks = {"tgt_mask": later, "src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}
        made = self.stack(self.embed(source), self.embed(said), **masks, tgt_is_causal=True)
        return F.linear(made, self.table.weight, self.bias)

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the vectors of tokens, with their positions."""
        vectors = self.table(tokens) * self.table.embedding_dim**0.5 + self.positions[: tokens.shape[1]]
        return cast(Tensor, self.dropout(vectors))


class TutorialRecurrent(nn.Module):
    """Around `nn.GRU`, with additive attention before each step of the decoder: the same parts as ours."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        size = shape.size
        self.source, self.target = (nn.Embedding(shape.vocabulary, size) for _ in range(2))
        self.encoder = nn.GRU(size, size, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(3 * size, size, batch_first=True)
        self.start, self.readout = nn.Linear(2 * size, size), nn.Linear(4 * size, size)
        self.near, self.far = nn.Linear(size, size, bias=False), nn.Linear(2 * size, size)
        self.energy = nn.Linear(size, 1, bias=False)
        self.output = nn.Linear(size, shape.vocabulary)
        self.output.weight = self.target.weight
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, source: Tensor, lengths: Tensor, said: Tensor) -> Tensor:
        """Return the scores of the next token after each given one."""
        read, words = self.dropout(self.source(source)), self.dropout(self.target(said))
        states, last = self.encoder(pack_padded_sequence(read, lengths, batch_first=True, enforce_sorted=False))
        values, _ = pad_packed_sequence(states, batch_first=True)
        keys, hidden = self.far(values), source == PADDING
        state, told = torch.tanh(self.start(last.transpose(0, 1).flatten(1))), []
        for word in words.unbind(1):
            scores = self.energy(torch.tanh(self.near(state)[:, None] + keys))[..., 0]
            weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
            context = (weights[:, None] @ values)[:, 0]
            state = self.decoder(torch.cat([word, context], -1)[:, None], state[None])[0][:, 0]
            told.append(torch.cat([state, context, word], -1))
        return cast(Tensor, self.output(self.dropout(torch.tanh(self.readout(torch.stack(told, 1))))))
