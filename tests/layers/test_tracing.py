"""Layers go through torch.compile in one graph and through torch.export."""

import subprocess
import sys

# In a process of its own: while tests run, jaxtyping wraps every function in one that dynamo cannot read.
SCRIPT = """
import torch
from torch import nn
from regard.layers import Attention, DecoderBlock, FeedForward, Pooling, Rotary
from regard.algebra.masks import Causal, Lengths

B, H, L, S, D = 2, 3, 5, 7, 4
SIZE = H * D


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        own, source = Attention(SIZE, heads=H, groups=1, rotary=Rotary(D)), Attention(SIZE, heads=H)
        forward = FeedForward(SIZE, 2 * SIZE)
        self.block = DecoderBlock(SIZE, attention=own, source=source, feed_forward=forward)
        self.pooling = Pooling.additive(SIZE, D)
        self.own = Attention(SIZE, heads=H)

    def forward(self, stream, source, lengths):
        mask = Lengths(lengths)
        stream = self.block(stream, self.block.begin(source, mask=mask)).output
        stream = self.own.attend_self(stream, mask=Causal())[0].output
        return self.pooling(stream) + self.pooling(source, mask=mask)


torch.manual_seed(0)
given = torch.randn(B, L, SIZE), torch.randn(B, S, SIZE), torch.tensor([S, 0])
module = Whole().eval()
compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
torch.testing.assert_close(compiled(*given), module(*given))
exported = torch.export.export(module, given).module()
torch.testing.assert_close(exported(*given), module(*given))
"""


def test_layers_compile_in_one_graph_and_export() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
