import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { sampleServer } from '../helpers/sample-server.ts';
import { seededNormal } from '../helpers/seeded-random.ts';
import { bytesOf, fileBytes } from '../indexer/vector-files/vector-files.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE_PASSAGES, sampleIndex } from './run-trawl.ts';

// docs/building.md, “Encode on a GPU elsewhere”: files as other programs write them, checked with an endpoint, a second Trawl.

const DIMENSION = 256;
const trawl = await sampleServer();
const folder = await fileFolder();
let local = '';
let vectors = new Float32Array(0);
const ids = readFileSync(SAMPLE_PASSAGES, 'utf8')
  .trim()
  .split('\n')
  .map((line) => (JSON.parse(line) as { id: string }).id);

before(async () => {
  local = await sampleIndex(folder);
  await trawl.started;
  const rows = readFileSync(join(local, 'shard-00000', 'vectors.faiss')).subarray(45);
  vectors = new Float32Array(rows.buffer.slice(rows.byteOffset, rows.byteOffset + rows.length));
});

const op = (codes: string): Buffer => Buffer.from(codes, 'latin1');

/** A text or bytes in a pickle. */
function counted(code: 'X' | 'B', bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([op(code), length, bytes]);
}

const text = (value: string): Buffer => counted('X', Buffer.from(value));

function integer(value: number): Buffer {
  const own = Buffer.alloc(5);
  own.write('J');
  own.writeInt32LE(value, 1);
  return own;
}

/** A float32 array in a pickle of protocol 3: a matrix, or with `rows` null a row. */
function pickledArray(values: Float32Array, rows: number | null): Buffer {
  return Buffer.concat([
    // numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), b'b')
    op('cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n'),
    integer(0),
    op('\x85C\x01b\x87R'),
    // Its state: (1, shape, dtype, False, data)
    op('('),
    integer(1),
    ...(rows === null
      ? [integer(values.length), op('\x85')]
      : [integer(rows), integer(values.length / rows), op('\x86')]),
    op('cnumpy\ndtype\n'),
    text('f4'),
    op('\x89\x88\x87R('),
    integer(3),
    text('<'),
    op('NNN'),
    integer(-1),
    integer(-1),
    integer(0),
    op('tb\x89'),
    counted('B', bytesOf(values)),
    op('tb'),
  ]);
}

/** The pickle of `(array, ids)`: what tevatron writes of an encoded corpus. */
function tevatronPickle(values: Float32Array, names: readonly string[]): Buffer {
  const array = pickledArray(values, names.length);
  return Buffer.concat([op('\x80\x03'), array, op(']('), ...names.map(text), op('e\x86.')]);
}

/** The pickle of a list of (id, row): what DPR's generate_dense_embeddings.py writes, with the name of the source before each id. */
function dprPickle(values: Float32Array, names: readonly string[]): Buffer {
  const pairs = names.map((name, row) =>
    Buffer.concat([text(`wiki:${name}`), pickledArray(rowOf(values, row), null), op('\x86')]),
  );
  return Buffer.concat([op('\x80\x03]('), ...pairs, op('e.')]);
}

const rowOf = (values: Float32Array, row: number): Float32Array =>
  values.subarray(row * DIMENSION, (row + 1) * DIMENSION);

/** The files of each program, in which the rows may be in another order than the corpus's. */
function filesOf(values: Float32Array): Readonly<Record<string, readonly string[]>> {
  const write = (name: string, content: Buffer): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const middle = 130;
  const half = (from: number, to: number): Buffer =>
    tevatronPickle(values.subarray(from * DIMENSION, to * DIMENSION), ids.slice(from, to));
  write('corpus.0.pkl', half(0, middle));
  write('corpus.1.pkl', half(middle, ids.length));
  const lines = ids.map((id, row) => JSON.stringify({ id, contents: '', vector: [...rowOf(values, row)] }));
  return {
    DPR: [write('dpr_0', dprPickle(values, ids))],
    Pyserini: [write('embeddings.jsonl', Buffer.from(lines.join('\n')))],
    'sentence-transformers': [write('vectors.npy', fileBytes('npy', values, DIMENSION))],
    FlashRAG: [write('emb_e5.memmap', fileBytes('memmap', values, DIMENSION))],
    tevatron: [join(folder, 'corpus.*.pkl')],
  };
}

const importing = (files: readonly string[], out: string): string[] => [
  'import',
  ...files,
  '--corpus',
  SAMPLE_PASSAGES,
  '--model',
  trawl.url,
  '--check-model',
  '100',
  '--out',
  join(folder, out),
  '--overwrite',
];

async function hitsOf(index: string, args: readonly string[] = []): Promise<unknown> {
  const query = 'Which river flows through Vienna?';
  return jsonOf<{ hits: unknown }>(await runTrawl(['search', index, query, '--k', '7', '--json', ...args])).hits;
}

test('vectors of DPR, Pyserini, sentence-transformers, FlashRAG and tevatron are imported after a check with a second Trawl', async () => {
  const expected = await hitsOf(local);
  for (const [program, files] of Object.entries(filesOf(vectors))) {
    const ended = await runTrawl(importing(files, 'made'));
    assert.equal(ended.code, 0, `${program}: ${ended.stderr}`);
    assert.match(
      ended.stderr,
      /100 passages embedded again with token-average-256: the median similarity to their vectors is 1\.0/,
    );
    assert.deepEqual(await hitsOf(join(folder, 'made'), ['--model', trawl.url]), expected, program);
    const verified = await runTrawl(['verify', join(folder, 'made'), '--model', trawl.url, '--require-model']);
    assert.equal(verified.code, 0, verified.stderr);
  }
  const left = readdirSync(folder).filter((name) => name.startsWith('made.'));
  assert.deepEqual(left, [], 'the working files are removed');
});

test('rows in another order, vectors of another model and ids of other passages are refused', async () => {
  const turned = new Float32Array(vectors.length);
  turned.set(vectors.subarray(DIMENSION));
  turned.set(vectors.subarray(0, DIMENSION), vectors.length - DIMENSION);
  const normal = seededNormal(3);
  const random = Float32Array.from(vectors, () => normal() / Math.sqrt(DIMENSION));
  for (const [values, wrong] of [
    [turned, 'the row order'],
    [random, 'the model'],
  ] as const) {
    for (const [program, files] of Object.entries(filesOf(values))) {
      const { code, stderr } = await runTrawl(importing(files, 'refused'));
      assert.notEqual(code, 0, `${program}, ${wrong}`);
      assert.match(stderr, /VECTORS_(MISMATCH|OF_ANOTHER_MODEL)/, `${program}, ${wrong}`);
    }
  }
  writeFileSync(join(folder, 'corpus.0.pkl'), tevatronPickle(vectors, ids.toReversed()));
  const { stderr } = await runTrawl(importing([join(folder, 'corpus.0.pkl')], 'refused'));
  assert.match(stderr, /id.*(differ|s-\d+)/s);
});
