import assert from 'node:assert/strict';
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { readQuestions } from '../../evaluation/read-questions.ts';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { importedMiniLm } from '../helpers/minilm.ts';
import { miniLmFolder, runTorchPeer, withoutMiniLm, withoutTorch } from '../helpers/peers.ts';
import { runs } from '../helpers/runs.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const SAMPLE = join(packageRoot, 'corpus', 'sample');
const MIXED_TEXTS = 500;
/** How many of them are compared. */
const TEXTS = runs(150, MIXED_TEXTS);
const withoutEngine = loadKernel().ok ? false : 'the native engine is not built';

const miniLm = importedMiniLm();
/** Vectors of sentence-transformers in float32 for `mixedTexts`, made once. */
let reference: Promise<number[][]> | undefined;

/** Texts unlike those of the sample corpus. */
const ODD_TEXTS = [
  '',
  ' ',
  '\t\n\r',
  '.',
  'a',
  '[SEP]',
  'two [SEP] parts [CLS] [MASK] [UNK] [PAD]',
  'ﬁne ﬂuﬀ, ＦＵＬＬ　ＷＩＤＴＨ, ½ ² ™',
  'naïve café, re\u0301sume\u0301 – “quoted” … ‰ №',
  'İstanbul ıssız ẞtraße ǅ ŉ',
  '北京市的天气怎么样？东京タワーはどこですか。서울의 날씨',
  'مرحبا بالعالم שלום עולם हिन्दी भाषा ไทย',
  '👩‍👩‍👧‍👦 🇫🇷 ❤️ 👍🏽 \u{1F9EA}\u{10FFFD}',
  'zero\u200Bwidth\u00ADsoft\uFEFFmark\u0000null\u0007bell\uFFFDreplacement',
  'https://example.org/a/very/long/path?with=query&and=more#fragment',
  '3.14159, 1,000,000; -40°C, 10^9 & C++/C# @user #tag a_b <b>',
  'antidisestablishmentarianism'.repeat(3),
  'x'.repeat(5_000),
  'supercalifragilistic '.repeat(1_000),
  'word, '.repeat(20_000),
  '字'.repeat(3_000),
  '\n\nA title\n\n\tand   a   text\u2028with\u2029breaks\u0085\n',
];

async function samplePassages(): Promise<string[]> {
  const render = parseTemplate();
  const texts: string[] = [];
  for await (const { row } of openCorpus([join(SAMPLE, 'passages.jsonl')])) texts.push(render(row));
  return texts;
}

/** Shuffled texts: passages, queries, odd texts, and joined passages of which some exceed the token limit. */
async function mixedTexts(): Promise<string[]> {
  const random = seededRandom(5);
  const passages = await samplePassages();
  const queries = (await readQuestions(join(SAMPLE, 'questions.jsonl'))).map(({ question }) => question);
  const texts = [...ODD_TEXTS, ...queries, ...passages];
  while (texts.length < MIXED_TEXTS) {
    const length = 1 + Math.floor(random() * 12);
    texts.push(Array.from({ length }, () => passages[Math.floor(random() * passages.length)]).join(' '));
  }
  return texts
    .slice(0, MIXED_TEXTS)
    .map((text) => ({ text, at: random() }))
    .sort((a, b) => a.at - b.at)
    .slice(0, TEXTS)
    .map(({ text }) => text);
}

test(`${TEXTS} texts have the same vectors as with sentence-transformers`, {
  skip: withoutTorch() || withoutMiniLm(),
}, async (t) => {
  const texts = await mixedTexts();
  assert.equal(texts.length, TEXTS);
  const encoder = await openEncoder(await miniLm());
  t.after(() => encoder.close());
  const { lowest, furthest, truncated } = await compared(encoder, texts, 1 - 1e-6);
  t.diagnostic(`smallest cosine 1 - ${(1 - lowest).toExponential(1)}, largest difference ${furthest.toExponential(1)}`);
  t.diagnostic(`${truncated} texts were truncated`);
  assert.ok(truncated > runs(5, 10), 'some texts exceed the token limit');
});

test(`${TEXTS} texts in bfloat16 have a cosine of at least 0.9999 to the vectors of sentence-transformers in float32`, {
  skip: withoutEngine || withoutTorch() || withoutMiniLm(),
}, async (t) => {
  const out = join(await tempFolder(t), 'minilm');
  const { folder } = await importModel(miniLmFolder()!, { out, precisions: ['bfloat16'] });
  const encoder = await openEncoder(folder, { precision: 'bfloat16' });
  t.after(() => encoder.close());
  const { lowest, furthest } = await compared(encoder, await mixedTexts(), 0.9999);
  t.diagnostic(`smallest cosine ${lowest.toFixed(6)}, largest difference ${furthest.toExponential(1)}`);
  assert.ok(furthest > 1e-5, 'as exact as float32');
});

/** Compares the encoder's vectors with those of sentence-transformers; each cosine has to be at least `least`. */
async function compared(
  encoder: TextEncoder,
  texts: readonly string[],
  least: number,
): Promise<{ lowest: number; furthest: number; truncated: number }> {
  const { vectors, outcomes } = await encoder.encode(texts, { inputType: 'passage' });
  reference ??= runTorchPeer('st_encode.py', { model: miniLmFolder(), texts }) as Promise<number[][]>;
  const expected = await reference;
  assert.equal(expected.length, TEXTS);
  let [lowest, furthest, truncated] = [1, 0, 0];
  for (const [i, vector] of expected.entries()) {
    const outcome = outcomes[i]!;
    assert.ok(outcome.ok, JSON.stringify(texts[i]!.slice(0, 80)));
    if (outcome.truncated) truncated++;
    const actual = vectors.subarray(i * encoder.dimension, (i + 1) * encoder.dimension);
    assert.equal(vector.length, actual.length);
    const cosine = cosineOf(actual, vector);
    assert.ok(cosine >= least, `1 - ${1 - cosine}: ${JSON.stringify(texts[i]!.slice(0, 80))}`);
    lowest = Math.min(lowest, cosine);
    furthest = Math.max(furthest, ...vector.map((value, at) => Math.abs(value - actual[at]!)));
  }
  return { lowest, furthest, truncated };
}

function cosineOf(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [product, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    product += a[i]! * b[i]!;
    aa += a[i]! ** 2;
    bb += b[i]! ** 2;
  }
  return product / Math.sqrt(aa * bb);
}

const TRANSFORMER_FILES = ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json', 'vocab.txt'];
const PROMPTS = { query: 'ask: ', passage: 'old: ', document: 'tell: ', other: 'any: ' };
const BERT_CASED = { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, lowercase: false };

/** Changes of the folder of all-MiniLM-L6-v2: keys of its JSON files that are set, and what else is done. */
const SETTINGS: readonly {
  readonly name: string;
  readonly files?: Readonly<Record<string, object>>;
  readonly change?: (folder: string) => Promise<void>;
}[] = [
  {
    name: 'a Transformer in a folder of its own',
    change: async (folder) => {
      await mkdir(join(folder, '0_Transformer'));
      for (const file of [...TRANSFORMER_FILES, 'sentence_bert_config.json'])
        await rename(join(folder, file), join(folder, '0_Transformer', file));
      await edited(join(folder, 'modules.json'), (modules) => {
        (modules as unknown as { path: string }[])[0]!.path = '0_Transformer';
      });
    },
  },
  { name: 'prompts', files: { 'config_sentence_transformers.json': { prompts: PROMPTS } } },
  {
    name: 'a default prompt beside prompts of queries and documents',
    files: { 'config_sentence_transformers.json': { prompts: PROMPTS, default_prompt_name: 'other' } },
  },
  { name: 'a cased tokenizer_config.json', files: { 'tokenizer_config.json': { do_lower_case: false } } },
  { name: 'accents that stay', files: { 'tokenizer_config.json': { strip_accents: false } } },
  { name: 'Chinese words', files: { 'tokenizer_config.json': { tokenize_chinese_chars: false } } },
  { name: 'a cased tokenizer.json of BertTokenizer', files: { 'tokenizer.json': { normalizer: BERT_CASED } } },
  {
    name: 'a cased tokenizer.json of another class',
    files: {
      'tokenizer.json': { normalizer: BERT_CASED },
      'tokenizer_config.json': { tokenizer_class: 'PreTrainedTokenizerFast', do_lower_case: true },
    },
  },
  {
    name: 'do_lower_case in sentence_bert_config.json',
    files: {
      'tokenizer.json': { normalizer: BERT_CASED },
      'tokenizer_config.json': { tokenizer_class: 'PreTrainedTokenizerFast' },
      'sentence_bert_config.json': { do_lower_case: true },
    },
  },
  {
    name: 'a token limit in the file of another architecture',
    files: { 'sentence_xlm-roberta_config.json': { max_seq_length: 9 } },
    change: (folder) => rm(join(folder, 'sentence_bert_config.json')),
  },
];

test('settings of a sentence-transformers folder change vectors as they do there', {
  skip: withoutTorch() || withoutMiniLm(),
}, async (t) => {
  const texts = [...ODD_TEXTS.filter((text) => text.length < 200), 'Hello WORLD, Straße and Zürich', '京都 Café'];
  const scratch = await tempFolder(t);
  const folders: string[] = [];
  for (const [i, { files = {}, change }] of SETTINGS.entries()) {
    const folder = join(scratch, `minilm-${i}`);
    await cp(miniLmFolder()!, folder, { recursive: true });
    for (const [file, values] of Object.entries(files))
      await edited(join(folder, file), (content) => Object.assign(content, values));
    await change?.(folder);
    folders.push(folder);
  }
  const peers = (await runTorchPeer('st_settings.py', { folders, texts })) as Record<string, number[][]>[];
  for (const [i, { name }] of SETTINGS.entries()) {
    const out = join(scratch, 'imported', String(i));
    await mkdir(dirname(out), { recursive: true });
    const { folder } = await importModel(folders[i]!, { out, precisions: ['float32'] });
    const encoder = await openEncoder(folder);
    for (const inputType of ['query', 'passage'] as const) {
      const { vectors } = await encoder.encode(texts, { inputType });
      for (const [at, expected] of peers[i]![inputType]!.entries()) {
        const cosine = cosineOf(vectors.subarray(at * encoder.dimension, (at + 1) * encoder.dimension), expected);
        assert.ok(cosine > 1 - 1e-6, `${name}, ${inputType}: cosine ${cosine} of ${JSON.stringify(texts[at])}`);
      }
    }
    await encoder.close();
  }
});

/** Changes a JSON file, which is {} if it does not exist. */
async function edited(path: string, change: (content: object) => void): Promise<void> {
  const content = JSON.parse(await readFile(path, 'utf8').catch(() => '{}')) as object;
  change(content);
  await writeFile(path, JSON.stringify(content));
}
