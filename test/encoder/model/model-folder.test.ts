import assert from 'node:assert/strict';
import { appendFile, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { readModelFolder, verifyModelFolder } from '../../../src/encoder/model/model-folder.ts';
import { listModels, locateModelFolder } from '../../../src/encoder/model/model-location.ts';
import { openEncoder } from '../../../src/encoder/open-encoder.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { TOY_DIMENSION, toyModel, transformersModel, writeJson } from '../model-fixtures.ts';

const BGE_INSTRUCTION = 'Represent this sentence for searching relevant passages: ';

test('a model folder is read as its trawl-model.json describes it', async (t) => {
  const folder = await toyModel(t);
  const model = await readModelFolder(folder);
  assert.equal(model.graphPath, join(folder, 'model.onnx'));
  assert.equal(model.graphOutput, 'last_hidden_state');
  const { sha256, ...identity } = model.identity;
  assert.match(sha256, /^[0-9a-f]{64}$/);
  assert.deepEqual(identity, {
    name: 'toy',
    architecture: 'toy',
    dimension: TOY_DIMENSION,
    pooling: 'mean',
    normalize: true,
    similarity: 'inner-product',
    prefixes: { query: '', passage: '' },
    maxTokens: { query: 32, passage: 64 },
    precision: 'float32',
    batchInvariant: true,
  });
  assert.ok(Object.isFrozen(model) && Object.isFrozen(model.identity));
});

test('folders with the same graph and tokenizer have the same checksum, recorded or not', async (t) => {
  const recorded = await readModelFolder(await toyModel(t));
  const computed = await readModelFolder(await toyModel(t, { change: (d) => (d.files = []) }));
  const other = await readModelFolder(await toyModel(t, { graph: 'slow.onnx' }));
  assert.equal(recorded.identity.sha256, computed.identity.sha256);
  assert.notEqual(recorded.identity.sha256, other.identity.sha256);
});

test('the query template of the description is in the identity, unless an override replaces it', async (t) => {
  const folder = await toyModel(t, { change: (d) => (d.queryTemplate = 'question-history-query') });
  assert.equal((await readModelFolder(folder)).identity.queryTemplate, 'question-history-query');
  const { identity } = await readModelFolder(folder, { queryTemplate: 'question-query' });
  assert.deepEqual([identity.queryTemplate, identity.overrides], [undefined, ['queryTemplate']]);
  const unknown = 'question' as 'query';
  await assert.rejects(
    readModelFolder(folder, { queryTemplate: unknown }),
    trawlError('CONFIG_INVALID', /"question"\. Expected one of query, /),
  );
  const wrong = await toyModel(t, { change: (d) => ((d as { queryTemplate: string }).queryTemplate = 'all') });
  await assert.rejects(readModelFolder(wrong), trawlError('MODEL_INVALID', /queryTemplate/));
});

test('overrides change the identity', async (t) => {
  const folder = await toyModel(t);
  const { identity } = await readModelFolder(folder, {
    queryPrefix: 'q: ',
    passagePrefix: 'p: ',
    pooling: 'cls',
    normalize: false,
    maxQueryTokens: 16,
    maxPassageTokens: 20,
  });
  assert.deepEqual(identity.prefixes, { query: 'q: ', passage: 'p: ' });
  assert.deepEqual(identity.maxTokens, { query: 16, passage: 20 });
  assert.equal(identity.pooling, 'cls');
  assert.equal(identity.normalize, false);
  await assert.rejects(
    readModelFolder(folder, { maxQueryTokens: 2 }),
    trawlError('CONFIG_INVALID', /maxQueryTokens is 2/),
  );
  const nulls = { queryPrefix: null, normalize: null, dimension: null, beforeTruncation: null } as object;
  assert.deepEqual((await readModelFolder(folder, nulls)).identity, (await readModelFolder(folder)).identity);
  const misspelt = { querryPrefix: 'x' } as object;
  await assert.rejects(
    readModelFolder(folder, misspelt),
    trawlError('CONFIG_INVALID', /"querryPrefix"\. Expected one of queryPrefix/),
  );
});

test('an invalid trawl-model.json is refused with the field and its allowed values', async (t) => {
  const cases: [(description: Record<string, unknown>) => void, RegExp][] = [
    [(d) => (d.format = 'other'), /format must be "trawl-model"/],
    [(d) => (d.version = 2), /has version 2, but this version of Trawl reads version 1/],
    [(d) => (d.pooling = 'max'), /pooling must be equal to one of.*: mean, cls, pooler, last, none/],
    [(d) => delete d.prefixes, /must have required properties prefixes/],
    [(d) => (d.maxTokens = { query: 1, passage: 64 }), /maxTokens\.query must be >= 3/],
    [
      (d) => (d.graph = { path: '../model.onnx', precision: 'float32' }),
      /"\.\.\/model\.onnx" is outside the model folder/,
    ],
    [(d) => (d.tokenizer = { path: '/etc/passwd' }), /is outside the model folder/],
  ];
  for (const [change, message] of cases) {
    await assert.rejects(readModelFolder(await toyModel(t, { change })), trawlError('MODEL_INVALID', message));
  }
});

test('a missing, resized or malformed file is named in the error', async (t) => {
  const missing = await toyModel(t);
  await rm(join(missing, 'tokenizer.json'));
  await assert.rejects(readModelFolder(missing), trawlError('MODEL_INVALID', /tokenizer\.json is missing/));

  const resized = await toyModel(t);
  await appendFile(join(resized, 'model.onnx'), 'x');
  await assert.rejects(
    readModelFolder(resized),
    trawlError('MODEL_INVALID', /model\.onnx has \d+ bytes, but the model's description says/),
  );

  const malformed = await toyModel(t);
  await writeFile(join(malformed, 'trawl-model.json'), '{"format": ');
  await assert.rejects(readModelFolder(malformed), trawlError('MODEL_INVALID', /is not valid JSON/));
});

test('a damaged tokenizer or small graph of the same size is found when the model is opened', async (t) => {
  for (const name of ['tokenizer.json', 'model.onnx']) {
    const folder = await toyModel(t);
    const bytes = await readFile(join(folder, name));
    // One letter of a vocabulary entry, or one bit of a weight: everything still parses.
    const at = name === 'tokenizer.json' ? bytes.indexOf('"the"') + 1 : bytes.length >> 1;
    bytes[at]! ^= 1;
    await writeFile(join(folder, name), bytes);
    const damaged = trawlError('MODEL_INVALID', new RegExp(`${name.replace('.', '\\.')} differs from the checksum`));
    await assert.rejects(readModelFolder(folder), damaged);
    await assert.rejects(openEncoder(folder, { workers: 1 }), damaged);
  }
});

test('only verifying compares large files with their checksums, and it names every file that differs', async (t) => {
  const folder = await toyModel(t);
  await truncate(join(folder, 'model.onnx'), 40 * 1024 * 1024);
  const path = join(folder, 'trawl-model.json');
  const description = JSON.parse(await readFile(path, 'utf8')) as { files: { path: string; bytes: number }[] };
  description.files.find((file) => file.path === 'model.onnx')!.bytes = 40 * 1024 * 1024;
  await writeJson(path, description);
  const model = await readModelFolder(folder);
  await assert.rejects(verifyModelFolder(model), trawlError('MODEL_INVALID', /model\.onnx differs from the checksum/));
  await writeFile(join(folder, 'tokenizer.json'), Buffer.alloc((await stat(model.tokenizerPath)).size));
  const both = verifyModelFolder(await readModelFolder(folder, {}, { checksums: false }));
  await assert.rejects(both, trawlError('MODEL_INVALID', /model\.onnx, .*tokenizer\.json differs from the checksum/));
});

test('a model name is looked up in the collections; a path is used as it is', async (t) => {
  const folder = await toyModel(t);
  const collection = dirname(folder);
  const empty = await tempFolder(t);
  assert.equal(locateModelFolder('toy', [empty, collection]), folder);
  assert.equal(locateModelFolder(folder, []), folder);
  assert.deepEqual(listModels([collection, empty, join(empty, 'nowhere')]), ['toy']);
  assert.throws(
    () => locateModelFolder('other', [empty, collection]),
    trawlError('MODEL_NOT_FOUND', new RegExp(`looked for ${join(empty, 'other')}.*Models found: toy.*\\./other`)),
  );
  assert.throws(() => locateModelFolder('./nowhere', [collection]), trawlError('MODEL_NOT_FOUND', /Models found: toy/));
  assert.throws(
    () => locateModelFolder('gpu-1:8000', [collection]),
    trawlError('MODEL_NOT_FOUND', /write http:\/\/gpu-1:8000/),
  );
  for (const [name, content, message] of [
    [
      'model.gguf',
      'GGUF\x03\0\0\0',
      /a GGUF model of llama\.cpp; expected the folder of a model\. Serve it with llama\.cpp/,
    ],
    ['model.bin', 'x', /is a file; expected the folder of a model\. Name the folder/],
  ] as const) {
    await writeFile(join(empty, name), content);
    assert.throws(() => locateModelFolder(join(empty, name), []), trawlError('MODEL_NOT_FOUND', message));
  }
  assert.throws(() => locateModelFolder('', [collection]), trawlError('MODEL_NOT_FOUND', /Model "" not found/));
});

test('a folder without a model is refused', async (t) => {
  await assert.rejects(
    readModelFolder(await tempFolder(t)),
    trawlError('MODEL_INVALID', /neither trawl-model\.json nor config\.json/),
  );
});

test('prefixes and pooling of E5 and BGE follow from their names if their files do not say', async (t) => {
  const expected: Record<string, [string, string, string]> = {
    'e5-base-v2': ['query: ', 'passage: ', 'mean'],
    'Agentic-R_e5': ['query: ', 'passage: ', 'mean'],
    'multilingual-e5-large-instruct': ['', '', 'mean'],
    'bge-small-en-v1.5': [BGE_INSTRUCTION, '', 'cls'],
    'bge-base-zh-v1.5': ['为这个句子生成表示以用于检索相关文章：', '', 'cls'],
    'bge-m3': ['', '', 'cls'],
    'all-MiniLM-L6-v2': ['', '', 'mean'],
    'some-encoder': ['', '', 'mean'],
  };
  for (const [name, [query, passage, pooling]] of Object.entries(expected)) {
    const { identity } = await readModelFolder(await transformersModel(t, name));
    assert.deepEqual(
      [identity.prefixes.query, identity.prefixes.passage, identity.pooling],
      [query, passage, pooling],
      name,
    );
    assert.equal(identity.normalize, true);
    assert.deepEqual(identity.maxTokens, { query: 256, passage: 512 });
  }
});

test("a checkpoint's own files take precedence over its name", async (t) => {
  const folder = await transformersModel(t, 'my-e5-tuned', {
    'modules.json': [
      { type: 'sentence_transformers.models.Transformer' },
      { type: 'sentence_transformers.models.Pooling' },
    ],
    '1_Pooling/config.json': {
      word_embedding_dimension: TOY_DIMENSION,
      pooling_mode_cls_token: true,
      pooling_mode_mean_tokens: false,
    },
    'config_sentence_transformers.json': {
      prompts: { query: 'ask: ', document: 'tell: ' },
      similarity_fn_name: 'cosine',
    },
    'sentence_bert_config.json': { max_seq_length: 128 },
  });
  const { identity } = await readModelFolder(folder);
  assert.equal(identity.name, basename(folder));
  assert.equal(identity.pooling, 'cls');
  assert.deepEqual(identity.prefixes, { query: 'ask: ', passage: 'tell: ' });
  assert.deepEqual(identity.maxTokens, { query: 128, passage: 128 });
  assert.equal(identity.normalize, true, 'E5 is normalised even if its modules do not say so');
  assert.equal(identity.similarity, 'inner-product');
  assert.equal(identity.architecture, 'bert');
});

test('without a Normalize module an unknown model or a MiniLM is not normalised, and cosine stays cosine', async (t) => {
  for (const name of ['plain', 'msmarco-MiniLM-L-6-v3']) {
    const folder = await transformersModel(t, name, {
      'modules.json': [
        { type: 'sentence_transformers.models.Transformer' },
        { type: 'sentence_transformers.models.Pooling' },
      ],
      'config_sentence_transformers.json': { prompts: { query: '', document: '' }, similarity_fn_name: 'cosine' },
    });
    const { identity } = await readModelFolder(folder);
    assert.equal(identity.normalize, false);
    assert.equal(identity.similarity, 'cosine');
  }
});

test('a checkpoint with an unsupported module, pooling or token limit, or without a graph, is refused', async (t) => {
  const dense = await transformersModel(t, 'dense', {
    'modules.json': [{ type: 'sentence_transformers.models.Dense' }],
  });
  await assert.rejects(
    readModelFolder(dense),
    trawlError('MODEL_INVALID', /a module Dense\. Expected one of Transformer, Pooling, Normalize\..*trawl model add/s),
  );
  const pooling = await transformersModel(t, 'max', { '1_Pooling/config.json': { pooling_mode_max_tokens: true } });
  await assert.rejects(readModelFolder(pooling), trawlError('MODEL_INVALID', /has the pooling max\. Expected/));
  const noGraph = await transformersModel(t, 'none', {}, 'elsewhere.onnx');
  await assert.rejects(readModelFolder(noGraph), trawlError('MODEL_INVALID', /has no ONNX graph: looked for/));
  const positions = await transformersModel(t, 'positions');
  await assert.rejects(
    readModelFolder(positions, { maxPassageTokens: 513 }),
    trawlError('CONFIG_INVALID', /from 3 to 512, the number of positions of this model/),
  );
});

test("RoBERTa's position offset is subtracted from its token limit", async (t) => {
  const folder = await transformersModel(t, 'roberta', {
    'config.json': {
      model_type: 'xlm-roberta',
      hidden_size: TOY_DIMENSION,
      max_position_embeddings: 514,
      pad_token_id: 1,
    },
    'tokenizer_config.json': { model_max_length: 1e30 },
  });
  assert.equal((await readModelFolder(folder)).identity.maxTokens.passage, 512);
});

test('the pooling is read from the folder that modules.json names, and its config must exist', async (t) => {
  const modules = (path: string) => [
    { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
    { idx: 1, name: '1', path, type: 'sentence_transformers.models.Pooling' },
  ];
  const elsewhere = await transformersModel(t, 'elsewhere', {
    'modules.json': modules('7_Pooling'),
    '7_Pooling/config.json': { pooling_mode_cls_token: true },
  });
  assert.equal((await readModelFolder(elsewhere)).identity.pooling, 'cls');
  const missing = await transformersModel(t, 'missing', { 'modules.json': modules('7_Pooling') });
  await assert.rejects(readModelFolder(missing), trawlError('MODEL_INVALID', /7_Pooling.config\.json is missing/));
  const outside = await transformersModel(t, 'outside', { 'modules.json': modules('../1_Pooling') });
  await assert.rejects(readModelFolder(outside), trawlError('MODEL_INVALID', /inside the folder/));
});

test('settings of sentence-transformers are followed', async (t) => {
  const identityWith = async (files: Record<string, unknown>) => {
    const folder = await transformersModel(t, 'plain', files);
    return (await readModelFolder(folder)).identity;
  };
  const prefixesOf = async (sentence: object) =>
    (await identityWith({ 'config_sentence_transformers.json': sentence })).prefixes;
  const prompts = { query: 'ask: ', passage: 'old: ', document: 'tell: ', other: 'any: ' };
  assert.deepEqual(await prefixesOf({ prompts }), { query: 'ask: ', passage: 'tell: ' });
  const both = { query: '', document: 'tell: ', other: 'any: ' };
  assert.deepEqual(await prefixesOf({ prompts: both, default_prompt_name: 'other' }), { query: '', passage: 'tell: ' });
  assert.deepEqual(await prefixesOf({ prompts: { other: 'any: ' }, default_prompt_name: null }), {
    query: '',
    passage: '',
  });
  for (const name of ['roberta', 'distilbert', 'camembert', 'albert', 'xlm-roberta', 'xlnet']) {
    const { maxTokens } = await identityWith({ [`sentence_${name}_config.json`]: { max_seq_length: 77 } });
    assert.equal(maxTokens.passage, 77, name);
  }
  const plain = { 'modules.json': [{ type: 'sentence_transformers.models.Transformer' }] };
  for (const [name, metric] of [
    ['dot', 'inner-product'],
    ['euclidean', 'l2'],
    ['cosine', 'cosine'],
  ]) {
    const files = { ...plain, 'config_sentence_transformers.json': { similarity_fn_name: name } };
    assert.equal((await identityWith(files)).similarity, metric);
  }
  const pooling = { '1_Pooling/config.json': { pooling_mode: ['cls'], include_prompt: false } };
  assert.equal((await identityWith(pooling)).pooling, 'cls', 'without prompts, include_prompt changes nothing');
});

test('a setting of sentence-transformers that Trawl does not follow is refused by its name', async (t) => {
  const sentence = 'config_sentence_transformers.json';
  const transformer = 'sentence_bert_config.json';
  const tokenizer = 'tokenizer_config.json';
  const module = (name: string) => ({ type: `sentence_transformers.models.${name}` });
  const refused: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [
      {
        [sentence]: { prompts: { query: 'ask: ' } },
        '1_Pooling/config.json': { pooling_mode: 'mean', include_prompt: false },
      },
      /1_Pooling.config\.json: include_prompt is false/,
    ],
    [{ [sentence]: { prompts: { query: 'ask: ' }, default_prompt_name: 'query' } }, /default_prompt_name is "query"/],
    [{ [sentence]: { similarity_fn_name: 'manhattan' } }, /similarity_fn_name is "manhattan"/],
    [{ [sentence]: { truncate_dim: 8 } }, /truncate_dim is 8/],
    [{ [transformer]: { processing_kwargs: { text: { max_length: 5 } } } }, /processing_kwargs is \{"text"/],
    [{ [transformer]: { tokenizer_args: { do_lower_case: false } } }, /tokenizer_args is/],
    [{ [transformer]: { transformer_task: 'fill-mask' } }, /transformer_task is "fill-mask"/],
    [{ [transformer]: { module_output_name: 'sentence_embedding' } }, /module_output_name is "sentence_embedding"/],
    [{ [tokenizer]: { truncation_side: 'left' } }, /truncation_side is "left".*set it to "right"/],
    [
      { 'tokenizer.json': { normalizer: { type: 'Sequence', normalizers: 5 } } },
      /json: normalizer\.normalizers must be/,
    ],
    [{ [tokenizer]: { do_lower_case: false } }, /change its tokenizer\.json.*trawl model add/],
    [{ 'modules.json': ['Transformer', 'Normalize', 'Pooling'].map(module) }, /Expected them in the order/],
    [{ 'modules.json': ['Transformer', 'Pooling', 'Pooling'].map(module) }, /Expected them in the order/],
  ];
  for (const [files, message] of refused) {
    const folder = await transformersModel(t, 'plain', files);
    await assert.rejects(readModelFolder(folder), trawlError('MODEL_INVALID', message));
  }
});
