import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { GRAPH_FILES } from '../../../indexer/model-import/plan-checkpoint.ts';
import { readModelFolder } from '../../../src/encoder/model/model-folder.ts';
import { openEncoder, openModelEncoder } from '../../../src/encoder/open-encoder.ts';
import { TextTokenizer } from '../../../src/encoder/tokenizer/tokenizer.ts';
import { fixture, writeJson } from '../../encoder/model-fixtures.ts';
import { runs } from '../../helpers/runs.ts';
import { encodeSafetensors, float32Bytes } from '../../helpers/safetensors.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { IDS, imported, MASK, runGraph, TYPES } from './imported-model.ts';
import {
  gte,
  MODERNBERT,
  modernBert,
  modernBertScore,
  nomicBert,
  qwen3,
  type ReferenceFamily,
  t5,
} from './reference-families.ts';
import { dense } from './reference-parts.ts';
import { HIDDEN, type TinyFamily, type TinyOptions, tinyCheckpoint } from './tiny-checkpoint.ts';
import { MODERNBERT_HEAD, TINY_GTE, TINY_MODERNBERT, TINY_NOMIC, TINY_QWEN3, TINY_T5 } from './tiny-families.ts';

const FAMILIES: readonly [string, TinyFamily, ReferenceFamily, TinyOptions?][] = [
  ['Qwen3', TINY_QWEN3, qwen3],
  ['Qwen3 in bfloat16', TINY_QWEN3, qwen3, { dtype: 'BF16' }],
  [
    'Qwen3 under a language-model head',
    TINY_QWEN3,
    qwen3,
    { prefix: 'model.', tensors: { 'lm_head.weight': [120, HIDDEN] } },
  ],
  ['ModernBERT', TINY_MODERNBERT, modernBert],
  ['ModernBERT in float16 under a head', TINY_MODERNBERT, modernBert, { dtype: 'F16', prefix: 'model.' }],
  [
    'ModernBERT with the config of transformers 5',
    TINY_MODERNBERT,
    modernBert,
    {
      config: {
        global_attn_every_n_layers: undefined,
        global_rope_theta: undefined,
        local_rope_theta: undefined,
        layer_types: ['full_attention', 'sliding_attention', 'sliding_attention', 'full_attention'],
        rope_parameters: {
          full_attention: { rope_type: 'default', rope_theta: MODERNBERT.globalBase },
          sliding_attention: { rope_type: 'default', rope_theta: MODERNBERT.localBase },
        },
      },
    },
  ],
  ['nomic BERT', TINY_NOMIC, nomicBert],
  ['GTE', TINY_GTE, gte],
  [
    'GTE without token types',
    TINY_GTE,
    gte,
    { prefix: 'new.', config: { type_vocab_size: 0 }, tensors: { 'embeddings.token_type_embeddings.weight': [] } },
  ],
  ['T5', TINY_T5, t5],
];

for (const [name, family, reference, options] of FAMILIES) {
  test(`${name}: the graphs compute the reference's vectors, with and without padding`, async (t) => {
    const checkpoint = await tinyCheckpoint(t, { family, ...options });
    const precisions = (['float32', 'float16', 'int8'] as const).filter(
      (precision) => family !== TINY_T5 || precision !== 'float16',
    );
    const { folder } = await imported(checkpoint, { precisions });
    const expected = IDS.map((ids, text) =>
      reference(
        checkpoint.tensors,
        ids.filter((_, i) => MASK[text]![i] === 1),
        TYPES[text]!,
      ),
    );
    for (const precision of precisions) {
      const graph = GRAPH_FILES[precision];
      const most = { float32: 1e-5, float16: 0.05, int8: 0.5 }[precision];
      const { last_hidden_state: hidden } = await runGraph(folder, graph);
      assert.deepEqual(hidden!.dims, [3, 7, HIDDEN]);
      const worst = worstDifference(expected, hidden!.data);
      assert.ok(worst <= most, `${graph}: ${worst}`);
      assert.ok(precision === 'float32' || worst > 1e-5, `${graph} is as exact as float32`);
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
    const texts = Array.from({ length: runs(20, 60) }, (_, i) =>
      [...'abcdefghijklmnop'.slice(i % 13, 2 + (i % 15))].join(' '),
    );
    for (const precision of ['float32', 'int8'] as const) {
      const model = await readModelFolder(folder, {}, { precision });
      const encoder = await openModelEncoder({ model, workers: 2 });
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

test('a vector of Qwen3-Embedding is truncated to its first values, and normalised again', async (t) => {
  const checkpoint = await withQwenTokenizer(t);
  const { folder } = await imported(checkpoint, { source: { kind: 'hub', id: 'Qwen/Qwen3-Embedding-0.6B' } });
  const tokenizer = await TextTokenizer.load(join(folder, 'tokenizer.json'));
  const query = 'Which river flows through Vienna?';
  for (const dimension of [1, 5, HIDDEN]) {
    const encoder = await openEncoder(folder, { workers: 1, overrides: { dimension } });
    t.after(() => encoder.close());
    assert.equal(encoder.dimension, dimension);
    for (const [inputType, prefix] of [
      ['passage', ''],
      ['query', 'Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:'],
    ] as const) {
      const ids = tokenizer.frame(tokenizer.contentIds(prefix + query, 999));
      const first = qwen3(checkpoint.tensors, ids).at(-1)!.slice(0, dimension);
      const { vectors } = await encoder.encode([query], { inputType });
      assert.equal(vectors.length, dimension);
      assert.ok(first.every((value, i) => Math.abs(value / Math.hypot(...first) - vectors[i]!) < 1e-5));
    }
  }
  await assert.rejects(
    openEncoder(folder, { workers: 1, overrides: { dimension: HIDDEN + 1 } }),
    trawlError('CONFIG_INVALID', /17/),
  );
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

for (const pooling of ['cls', 'mean'] as const) {
  test(`a cross-encoder of ModernBERT scores as the reference does: ${pooling}`, async (t) => {
    const checkpoint = await tinyCheckpoint(t, {
      family: TINY_MODERNBERT,
      prefix: 'model.',
      tensors: MODERNBERT_HEAD,
      config: { architectures: ['ModernBertForSequenceClassification'], num_labels: 1, classifier_pooling: pooling },
    });
    const { folder, description } = await imported(checkpoint);
    assert.deepEqual([description.kind, description.activation, description.labels], ['cross-encoder', 'sigmoid', 1]);
    const { logits } = await runGraph(folder, 'model.onnx');
    for (const [text, ids] of IDS.entries()) {
      const read = ids.filter((_, i) => MASK[text]![i] === 1);
      const expected = modernBertScore(checkpoint.tensors, read, pooling);
      assert.ok(Math.abs(logits!.data[text]! - expected) < 1e-5);
    }
  });
}

/** T5 with two Dense modules after the pooling. */
const DENSE_FILES = {
  'modules.json': [
    { type: 'sentence_transformers.models.Transformer', path: '' },
    { type: 'sentence_transformers.models.Pooling', path: '1_Pooling' },
    { type: 'sentence_transformers.models.Dense', path: '2_Dense' },
    { type: 'sentence_transformers.models.Normalize', path: '3_Normalize' },
  ],
  '1_Pooling/config.json': { pooling_mode: 'mean' },
};

/** A checkpoint with a Dense module of 5 values. */
async function withDense(t: TestContext, config: object, pooling = 'mean') {
  const checkpoint = await tinyCheckpoint(t, {
    family: { ...TINY_T5, files: { ...DENSE_FILES, '1_Pooling/config.json': { pooling_mode: pooling } } },
  });
  const weight = Float32Array.from({ length: 5 * HIDDEN }, (_, i) => Math.sin(i));
  await writeJson(join(checkpoint.folder, '2_Dense', 'config.json'), {
    in_features: HIDDEN,
    out_features: 5,
    bias: false,
    activation_function: 'torch.nn.modules.linear.Identity',
    ...config,
  });
  const tensors = { 'linear.weight': { dtype: 'F32', shape: [5, HIDDEN], bytes: float32Bytes(weight) } };
  await writeFile(join(checkpoint.folder, '2_Dense', 'model.safetensors'), encodeSafetensors(tensors));
  return { checkpoint, linear: { 'linear.weight': { shape: [5, HIDDEN], values: weight } } };
}

test('a Dense module after the pooling changes the vectors as sentence-transformers does', async (t) => {
  for (const [pooling, activation] of [
    ['mean', 'Identity'],
    ['cls', 'Tanh'],
  ] as const) {
    const { checkpoint, linear } = await withDense(
      t,
      { activation_function: `torch.nn.modules.${activation}` },
      pooling,
    );
    const { folder, description } = await imported(checkpoint, { precisions: ['float32', 'int8'] });
    assert.deepEqual([description.dimension, description.pooling], [5, pooling]);
    const tokenizer = await TextTokenizer.load(join(folder, 'tokenizer.json'));
    const rows = t5(checkpoint.tensors, tokenizer.frame(tokenizer.contentIds('what is the query', 99)));
    const mean = rows[0]!.map((_, c) => rows.reduce((sum, row) => sum + row[c]!, 0) / rows.length);
    const mapped = dense(linear, 'linear', pooling === 'mean' ? mean : rows[0]!);
    const expected = activation === 'Tanh' ? mapped.map(Math.tanh) : mapped;
    const encoder = await openEncoder(folder, { workers: 1 });
    const { vectors } = await encoder.encode(['what is the query'], { inputType: 'passage' });
    await encoder.close();
    assert.ok(expected.every((value, i) => Math.abs(value / Math.hypot(...expected) - vectors[i]!) < 1e-5));
  }
});

test('a Dense module that cannot be applied is refused', async (t) => {
  for (const [config, message] of [
    [{ activation_function: 'torch.nn.modules.activation.Tanh' }, /is tanh; after a mean pooling only a linear/],
    [{ activation_function: 'torch.nn.modules.activation.ReLU' }, /ReLU.*expected Identity or Tanh/],
    [{ in_features: 7 }, /in_features is 7, but the vectors before it have 16 values/],
    [{ out_features: 6 }, /linear\.weight has the shape \[5, 16\], but config\.json implies \[6, 16\]/],
    [{ bias: true }, /no tensor linear\.bias/],
  ] as const) {
    const { checkpoint } = await withDense(t, config);
    await assert.rejects(imported(checkpoint), trawlError('MODEL_INVALID', message));
  }
  const { checkpoint } = await withDense(t, {});
  const outside = DENSE_FILES['modules.json'].map((each) => ({ ...each, path: each.path.replace('2_', '../2_') }));
  await writeJson(join(checkpoint.folder, 'modules.json'), outside);
  await assert.rejects(imported(checkpoint), trawlError('MODEL_INVALID', /"\.\.\/2_Dense", must be inside the folder/));
});

test('no float16 graph is made of T5, whose activations exceed it', async (t) => {
  const checkpoint = await tinyCheckpoint(t, { family: TINY_T5 });
  await assert.rejects(
    imported(checkpoint, { precisions: ['float32', 'float16'] }),
    trawlError('CONFIG_INVALID', /activations of t5 exceed float16.*Ask for float32 or int8/),
  );
});

test('an encoder-decoder without a pooling is refused with what it is', async (t) => {
  const { folder } = await tinyCheckpoint(t, {
    family: TINY_T5,
    config: { architectures: ['T5ForConditionalGeneration'] },
  });
  await rm(join(folder, '1_Pooling'), { recursive: true });
  await assert.rejects(
    imported(folder),
    trawlError('MODEL_INVALID', /T5ForConditionalGeneration.*an encoder-decoder/s),
  );
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
    'has relative positions of an odd kind',
    TINY_T5,
    { config: { relative_attention_num_buckets: 30 } },
    /30 is not a multiple of 4/,
  ],
  [
    'has an unknown feed-forward layer',
    TINY_T5,
    { config: { feed_forward_proj: 'gated-relu' } },
    /"gated-relu"; expected one of relu/,
  ],
  ['is a mixture of experts', TINY_NOMIC, { config: { num_experts: 8 } }, /num_experts is 8; only 0 is supported/],
  [
    'has rotary positions in a part of its heads',
    TINY_NOMIC,
    { config: { rotary_emb_fraction: 0.5 } },
    /only 1 is supported/,
  ],
  ['has norms before its layers', TINY_NOMIC, { config: { prenorm: true } }, /prenorm is true/],
  [
    'scales its scores by the length',
    TINY_GTE,
    { config: { logn_attention_scale: true } },
    /logn_attention_scale is true/,
  ],
  [
    'has a scaling without a factor',
    TINY_GTE,
    { config: { rope_scaling: { type: 'ntk' } } },
    /rope_scaling\.factor is undefined/,
  ],
  ['has heads of an odd size', TINY_GTE, { config: { num_attention_heads: 16 } }, /16 attention heads of an even size/],
  ['lists too few layers', TINY_MODERNBERT, { config: { layer_types: ['full_attention'] } }, /it must have 4 entries/],
  [
    'lists an unknown kind of layer',
    TINY_MODERNBERT,
    { config: { layer_types: ['a', 'b', 'c', 'd'] } },
    /each of full_attention/,
  ],
  [
    'has a bias that its config denies',
    TINY_MODERNBERT,
    { tensors: { 'final_norm.bias': [HIDDEN] } },
    /final_norm\.bias, but the architecture in config\.json has no bias/,
  ],
  [
    'is a cross-encoder of a family without cross-encoders',
    TINY_NOMIC,
    { config: { architectures: ['NomicBertForSequenceClassification'] } },
    /cross-encoder .*of the architecture nomic_bert, of which only encoders/,
  ],
];

for (const [how, family, options, message] of BAD) {
  test(`a checkpoint of ${family.config.model_type} that ${how} is refused`, async (t) => {
    const checkpoint = await tinyCheckpoint(t, { family, ...options });
    await assert.rejects(imported(checkpoint), trawlError('MODEL_INVALID', message));
  });
}
