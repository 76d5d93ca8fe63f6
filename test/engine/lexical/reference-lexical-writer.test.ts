import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { AnalyserName } from '../../../src/engine/lexical/lexical-settings.ts';
import { openLexicalWriter } from '../../../src/engine/lexical/open-lexical.ts';
import { type Kernel, loadKernel } from '../../../src/engine/native/kernel.ts';
import { writeLexicalFile } from '../../../src/engine/reference/lexical/lexical-file-writer.ts';
import { ReferenceLexicalIndex } from '../../../src/engine/reference/lexical/reference-lexical-index.ts';
import { ReferenceLexicalWriter } from '../../../src/engine/reference/lexical/reference-lexical-writer.ts';
import { runs } from '../../helpers/runs.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { lexicalHits, writeLexical } from './lexical-files.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
const kernel = (loaded.ok ? loaded.kernel : undefined) as Kernel;
const ANALYSERS = ['english', 'standard', 'whitespace', 'cjk'] as const;

/** Asserts that both writers write the same counts and bytes, and that the native engine finds no fault in them. */
async function assertSameFile(folder: string, texts: readonly string[], analyser: AnalyserName): Promise<void> {
  const write = async (engine: Kernel | undefined, step: number) => {
    const path = join(folder, engine === undefined ? 'reference.bm25' : 'native.bm25');
    const writer = openLexicalWriter(path, analyser, engine);
    for (let at = 0; at < texts.length; at += step) await writer.append(texts.slice(at, at + step));
    const counts = await writer.finish();
    writer.abandon();
    return { path, counts, bytes: readFileSync(path) };
  };
  const native = await write(kernel, 1000);
  const reference = await write(undefined, 7);
  assert.deepEqual(reference.counts, native.counts);
  assert.ok(
    reference.bytes.equals(native.bytes),
    `${analyser}: the first other byte is ${firstOther(reference.bytes, native.bytes)}`,
  );
  assert.equal(await kernel.verifyLexical(reference.path), null);
}

function firstOther(a: Buffer, b: Buffer): number {
  return a.findIndex((byte, i) => byte !== b[i]);
}

/** Words with a Zipf distribution, some rows long, some of one repeated word. */
function zipfTexts(seed: number, rows: number, words: number): string[] {
  const random = seededRandom(seed);
  return Array.from({ length: rows }, (_, row) => {
    const length = Math.floor(random() * (row % 17 === 2 ? 900 : 40));
    if (row % 23 === 4) return 'w1 '.repeat(length);
    return Array.from({ length }, () => `w${Math.floor(words ** random()) - 1}`).join(' ');
  });
}

test('the writer in TypeScript writes the bytes of the native engine, for random texts and every analyser', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const word = fc.oneof(
    fc.constantFrom('a', 'running', 'Łódź', '東京', 'タワー', 'ﾊﾟﾝ', "O'Neil’s", '\ud800', '\u{10400}', '\ufb01', '😀'),
    fc.string({ unit: 'grapheme', maxLength: 20 }),
  );
  const texts = fc.array(
    fc.array(word, { maxLength: 30 }).map((words) => words.join(' ')),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(texts, fc.constantFrom(...ANALYSERS), (rows, analyser) => assertSameFile(folder, rows, analyser)),
    { numRuns: runs(20, 60), seed: 5 },
  );
});

test('long lists have the same bytes', { skip }, async (t) => {
  const folder = await tempFolder(t);
  for (const [seed, rows, words] of [
    [1, 127, 3],
    [2, 128, 3],
    [3, 129, 3],
    [4, 3000, 30],
    [5, 2000, 5000],
  ] as const) {
    for (const analyser of ['english', 'whitespace'] as const) {
      await assertSameFile(folder, zipfTexts(seed, rows, words), analyser);
    }
  }
});

const EDGES: Readonly<Record<string, readonly string[]>> = {
  'no rows': [],
  'rows without tokens': ['', ' ', '...', ''],
  'a single row': ['one'],
  'a term in one row, often': ['', 'word '.repeat(1000)],
  'frequencies above 255 in a long list': Array.from({ length: 300 }, (_, row) => 'x '.repeat(row + 1)),
  'rare high frequencies among low ones': Array.from({ length: 256 }, (_, row) => 'x '.repeat(row % 9 === 0 ? 70 : 1)),
  'a length above 2^16': ['a', 'x y '.repeat(40_000), 'x'],
  'far apart rows': Array.from({ length: 5000 }, (_, row) => (row % 2499 === 0 ? 'x' : '')),
  'words of 254 to 257 and of 3,000 units': [254, 255, 256, 257, 3000].map((units) => 'é'.repeat(units)),
  'terms that share 14 to 17 bytes': [14, 15, 16, 17].flatMap((bytes) => [
    `${'a'.repeat(bytes)}b`,
    `${'a'.repeat(bytes)}${'c'.repeat(bytes)}`,
  ]),
  'terms whose UTF-16 order differs from their byte order': [
    '\u{1f600} \ufb01 \ue000 z \u{10ffff} \ud7ff',
    '\u{1f600}',
  ],
  'lone surrogates': ['a\ud800b \udc00', '\udc00\ud800'],
  '33 terms': [Array.from({ length: 33 }, (_, i) => `t${i}`).join(' ')],
};

test('unusual texts have the same bytes', { skip }, async (t) => {
  const folder = await tempFolder(t);
  for (const [name, texts] of Object.entries(EDGES)) {
    for (const analyser of ANALYSERS) {
      await assertSameFile(folder, texts, analyser).catch((error: Error) => {
        throw new Error(`${name}: ${error.message}`, { cause: error });
      });
    }
  }
});

test('an index written without the engine answers searches', async (t) => {
  const texts = ['the quick fox', 'a lazy dog', '', 'the dog and the fox'];
  const source = await writeLexical(await tempFolder(t), texts, undefined);
  const index = new ReferenceLexicalIndex(source);
  const [found] = lexicalHits(await index.search({ queries: ['lazy fox'], k: 10 }));
  assert.deepEqual(
    found!.map(({ row }) => row),
    [1, 0, 3],
  );
  await index.close();
});

test('more postings or terms than fit into memory are refused with the way out', async (t) => {
  const path = join(await tempFolder(t), 'a.bm25');
  const few = new ReferenceLexicalWriter(path, 'english', { postings: 4 });
  await few.append(['a1 b1', 'a1 a1 c1']);
  await assert.rejects(
    few.append(['b1']),
    trawlError('ENGINE_MISSING', /a\.bm25: .* more than 4 postings.*npm run build.*--shard-rows/),
  );
  const terms = new ReferenceLexicalWriter(path, 'english', { terms: 2 });
  await assert.rejects(terms.append(['a1 b1 c1']), trawlError('ENGINE_MISSING', /more than 2 terms/));
  assert.ok(!existsSync(path));
});

test('the writer in TypeScript stops when cancelled, refuses simultaneous calls, and names a path it cannot write', async (t: TestContext) => {
  const folder = await tempFolder(t);
  const writer = new ReferenceLexicalWriter(join(folder, 'none', 'a.bm25'), 'english');
  await assert.rejects(writer.append(['text'], AbortSignal.abort()), trawlError('CANCELLED'));
  const first = writer.append(['x'.repeat(100_000)]);
  await assert.rejects(writer.append(['more']), TypeError);
  await first;
  await assert.rejects(writer.finish(AbortSignal.abort()), trawlError('CANCELLED'));
  await assert.rejects(writer.finish(), trawlError('OUTPUT_NOT_WRITABLE', /none/));
  const content = {
    tokens: 1,
    lengthCodes: Uint8Array.of(1),
    byTerm: () => assert.fail('encoded before the file is open'),
  };
  const writing = writeLexicalFile(join(folder, 'none', 'a.bm25'), 'english', content);
  await assert.rejects(writing, trawlError('OUTPUT_NOT_WRITABLE', /none/));
});
