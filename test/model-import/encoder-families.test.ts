import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { readModelFolder } from '../../src/embedding/model/model-folder.ts';
import { ModelEncoder } from '../../src/embedding/model-encoder.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import { TextTokenizer } from '../../src/embedding/tokenizer/tokenizer.ts';
import { fixture } from '../embedding/model-fixtures.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { IDS, imported, MASK, runGraph } from './imported-model.ts';
import { qwen3, type ReferenceFamily } from './reference-families.ts';
import { HIDDEN, type TinyFamily, type TinyOptions, tinyCheckpoint } from './tiny-checkpoint.ts';
import { TINY_QWEN3 } from './tiny-families.ts';

const FAMILIES: readonly [string, TinyFamily, ReferenceFamily, TinyOptions?][] = [
  ['Qwen3', TINY_QWEN3, qwen3],
  ['Qwen3 in bfloat16', TINY_QWEN3, qwen3, { dtype: 'BF16' }],
  [
    'Qwen3 under a language-model head',
    TINY_QWEN3,
    qwen3,
    { prefix: 'model.', tensors: { 'lm_head.weight': [120, HIDDEN] } },
  ],
];

for (const [name, family, reference, options] of FAMILIES) {
  test(`${name}: the graphs compute the reference's vectors, with and without padding`, async (t) => {
    const checkpoint = await tinyCheckpoint(t, { family, ...options });
    const { folder } = await imported(checkpoint, { precisions: ['float32', 'float16', 'int8'] });
    const expected = IDS.map((ids, text) =>
      reference(
        checkpoint.tensors,
        ids.filter((_, i) => MASK[text]![i] === 1),
      ),
    );
    for (const [graph, most] of [
      ['model.onnx', 1e-5],
      ['model-float16.onnx', 0.05],
      ['model-int8.onnx', 0.3],
    ] as const) {
      const { last_hidden_state: hidden } = await runGraph(folder, graph);
      assert.deepEqual(hidden!.dims, [3, 7, HIDDEN]);
      const worst = worstDifference(expected, hidden!.data);
      assert.ok(worst <= most, `${graph}: ${worst}`);
      assert.ok(graph === 'model.onnx' || worst > 1e-5, `${graph} is as exact as float32`);
    }
  });
}

/** The largest difference of an element; padding does not count. */
function worstDifference(expected: readonly (readonly number[][])[], hidden: Float32Array): number {
  let worst = 0;
  for (const [text, rows] of expected.entries()) {
    for (const [i, row] of rows.entries()) {
      const at = (text * MASK[0]!.length + i) * row.length;
      for (const [c, value] of row.entries()) worst = Math.max(worst, Math.abs(hidden[at + c]! - value));
    }
  }
  return worst;
}

for (const family of new Set(FAMILIES.map(([, each]) => each))) {
  test(`a text has the same bits in any batch: ${family.config.model_type}`, async (t) => {
    const { folder } = await imported(await tinyCheckpoint(t, { family }), { precisions: ['float32', 'int8'] });
    const texts = Array.from({ length: 60 }, (_, i) => [...'abcdefghijklmnop'.slice(i % 13, 2 + (i % 15))].join(' '));
    for (const precision of ['float32', 'int8'] as const) {
      const model = await readModelFolder(folder, {}, { precision });
      const encoder = await ModelEncoder.open({ model, workers: 2 });
      t.after(() => encoder.close());
      const { vectors } = await encoder.encode(texts, { inputType: 'query' });
      for (const [i, text] of texts.entries()) {
        const alone = await encoder.encode([text], { inputType: 'query' });
        assert.deepEqual(vectors.slice(i * HIDDEN, (i + 1) * HIDDEN), alone.vectors, `${precision}: ${text}`);
      }
      await encoder.close();
    }
  });
}

/** A Qwen3 checkpoint with the tokenizer that belongs to it, changed by `change`. */
async function withQwenTokenizer(t: TestContext, change: (file: Record<string, unknown>) => void = () => {}) {
  const rows = 1506;
  const checkpoint = await tinyCheckpoint(t, {
    family: TINY_QWEN3,
    tensors: { 'embed_tokens.weight': [rows, HIDDEN] },
    config: { vocab_size: rows },
  });
  const file = JSON.parse(gunzipSync(readFileSync(fixture('qwen3-tokenizer.json.gz'))).toString());
  change(file);
  await writeFile(join(checkpoint.folder, 'tokenizer.json'), JSON.stringify(file));
  return checkpoint;
}

test('a text of Qwen3-Embedding ends with its end token, and that token’s vector is the text’s', async (t) => {
  const checkpoint = await withQwenTokenizer(t);
  const { folder, description } = await imported(checkpoint, {
    source: { kind: 'hub', id: 'Qwen/Qwen3-Embedding-0.6B' },
  });
  assert.deepEqual([description.pooling, description.normalize], ['last', true]);
  assert.deepEqual(description.prefixes, {
    query: 'Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:',
    passage: '',
  });
  const tokenizer = await TextTokenizer.load(join(folder, 'tokenizer.json'));
  const ids = tokenizer.frame(tokenizer.contentIds('what is 42?', 99));
  assert.deepEqual(ids.slice(-1), tokenizer.contentIds('<|endoftext|>', 9));
  const last = qwen3(checkpoint.tensors, ids).at(-1)!;
  const length = Math.hypot(...last);
  const encoder = await openEncoder(folder, { workers: 1 });
  const { vectors } = await encoder.encode(['what is 42?'], { inputType: 'passage' });
  await encoder.close();
  assert.ok(last.every((value, i) => Math.abs(value / length - vectors[i]!) < 1e-5));
});

test('an end token that tokenizer.json does not add is added at import', async (t) => {
  const complete = await TextTokenizer.load((await withQwenTokenizer(t)).folder.concat('/tokenizer.json'));
  const expected = complete.frame(complete.contentIds('a text', 99));
  for (const own of [null, { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false }]) {
    const checkpoint = await withQwenTokenizer(t, (file) => {
      file.post_processor = own;
    });
    const { folder } = await imported(checkpoint);
    const tokenizer = await TextTokenizer.load(join(folder, 'tokenizer.json'));
    assert.deepEqual(tokenizer.frame(tokenizer.contentIds('a text', 99)), expected);
  }
  const other = await withQwenTokenizer(t, (file) => {
    file.post_processor = null;
    file.added_tokens = [];
  });
  const { folder } = await imported(other);
  const [before, after] = [other.folder, folder].map((at) => readFile(join(at, 'tokenizer.json'), 'utf8'));
  assert.equal(await after, await before, 'a tokenizer without the token is copied');
});

test('a causal language model without a pooling is refused with what it is and what would fit', async (t) => {
  const { folder } = await tinyCheckpoint(t, { family: TINY_QWEN3 });
  await rm(join(folder, '1_Pooling'), { recursive: true });
  await assert.rejects(
    imported(folder),
    trawlError('MODEL_INVALID', /Qwen3ForCausalLM.*causal language model.*Qwen\/Qwen3-Embedding-0\.6B/s),
  );
});

/** What is wrong with a checkpoint of a family, its changes, and the message. */
const BAD: readonly [string, TinyFamily, TinyOptions, RegExp][] = [
  ['has sliding windows', TINY_QWEN3, { config: { use_sliding_window: true } }, /use_sliding_window is true/],
  [
    'scales its rotary positions',
    TINY_QWEN3,
    { config: { rope_scaling: { type: 'yarn', factor: 4 } } },
    /rope_scaling is .*yarn.*scaled rotary positions are not supported/,
  ],
  [
    'scales its rotary positions as transformers 5 writes it',
    TINY_QWEN3,
    { config: { rope_parameters: { rope_type: 'yarn', factor: 4 } } },
    /rope_parameters is .*yarn/,
  ],
  ['has a rotary base of 0', TINY_QWEN3, { config: { rope_theta: 0 } }, /rope_theta is 0/],
  [
    'has heads that do not share keys evenly',
    TINY_QWEN3,
    { config: { num_key_value_heads: 3 } },
    /4 is not a multiple of num_key_value_heads 3/,
  ],
  ['has odd heads', TINY_QWEN3, { config: { head_dim: 7 } }, /head_dim 7 is odd/],
  ['has a bias that is not a flag', TINY_QWEN3, { config: { attention_bias: 1 } }, /attention_bias is 1/],
  [
    'has biases that its config denies',
    TINY_QWEN3,
    { tensors: { 'layers.0.self_attn.q_proj.bias': [32] } },
    /layers\.0\.self_attn\.q_proj\.bias, but the architecture in config\.json has no bias/,
  ],
  [
    'lacks biases that its config announces',
    TINY_QWEN3,
    { config: { attention_bias: true } },
    /no tensor layers\.0\.self_attn\.q_proj\.bias/,
  ],
  ['has more layers than its config says', TINY_QWEN3, { config: { num_hidden_layers: 1 } }, /weights of layer 1/],
  [
    'is a cross-encoder of a family without cross-encoders',
    TINY_QWEN3,
    { config: { architectures: ['Qwen3ForSequenceClassification'] } },
    /cross-encoder .*of the architecture qwen3, of which only encoders/,
  ],
];

for (const [how, family, options, message] of BAD) {
  test(`a checkpoint of ${family.config.model_type} that ${how} is refused`, async (t) => {
    const checkpoint = await tinyCheckpoint(t, { family, ...options });
    await assert.rejects(imported(checkpoint), trawlError('MODEL_INVALID', message));
  });
}
