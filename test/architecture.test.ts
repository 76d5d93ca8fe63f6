import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSources, type SourceFile } from './helpers/source-imports.ts';

const sources = readSources();

/** Sources whose path begins so, with what they may import of ours; the folder itself is always allowed. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'src/errors.ts': [],
  'src/metric.ts': [],
  'src/abort.ts': ['src/errors.ts'],
  'src/package-root.ts': [],
  'src/queue-clock.ts': [],
  'src/file-checksum.ts': ['src/abort.ts'],
  'src/file-lock.ts': ['src/errors.ts'],
  'src/options/': ['src/errors.ts'],
  'src/manifest/': ['src/errors.ts', 'src/metric.ts'],
  'src/vector-index/': ['src/errors.ts', 'src/metric.ts', 'src/abort.ts', 'src/options/', 'src/package-root.ts'],
  'src/embedding/': [
    'src/errors.ts',
    'src/file-checksum.ts',
    'src/metric.ts',
    'src/abort.ts',
    'src/manifest/',
    'src/package-root.ts',
    'src/queue-clock.ts',
    'src/options/onnxruntime-telemetry.ts',
  ],
  'src/passages/': ['src/errors.ts', 'src/abort.ts'],
  'src/retrieval/': [
    'src/errors.ts',
    'src/metric.ts',
    'src/abort.ts',
    'src/queue-clock.ts',
    'src/manifest/',
    'src/embedding/',
    'src/vector-index/',
    'src/passages/',
  ],
  'src/http/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/package-root.ts',
    'src/retrieval/retriever.ts',
    'src/retrieval/timings.ts',
    'src/retrieval/statistics-sum.ts',
    'src/embedding/text-encoder.ts',
    'src/passages/contents.ts',
    'src/passages/document-fields.ts',
  ],
  // Types alone: see the test below.
  'src/client/': ['src/http/dialects/native-search.ts', 'src/http/routes/native.ts'],
  'src/index.ts': ['src/'],
  'checkpoint/': [
    'src/errors.ts',
    'src/file-lock.ts',
    'src/file-checksum.ts',
    'src/abort.ts',
    'src/manifest/',
    'src/embedding/',
    'src/package-root.ts',
  ],
  'hub/': ['src/errors.ts', 'src/abort.ts', 'src/file-lock.ts', 'src/options/', 'src/manifest/write-json.ts'],
  'corpus/': ['src/errors.ts', 'src/abort.ts', 'src/passages/contents.ts'],
  'prepare/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/manifest/write-json.ts',
    'src/embedding/',
    'corpus/',
    'indexer/write-failure.ts',
  ],
  'export/': [
    'src/errors.ts',
    'src/metric.ts',
    'src/abort.ts',
    'src/manifest/',
    'src/vector-index/',
    'src/passages/',
    'src/retrieval/index-directory.ts',
    'corpus/',
    'prepare/pack.ts',
    'prepare/partial-file.ts',
    'indexer/disk-room.ts',
  ],
  'evaluation/': ['src/errors.ts'],
  'embeddings/': ['src/errors.ts', 'src/metric.ts', 'src/vector-index/'],
  'indexer/': [
    'src/file-checksum.ts',
    'src/file-lock.ts',
    'src/errors.ts',
    'src/metric.ts',
    'src/abort.ts',
    'src/package-root.ts',
    'src/manifest/',
    'src/embedding/',
    'src/vector-index/',
    'src/passages/',
    'src/retrieval/',
    'corpus/',
    'embeddings/',
  ],
  'cli/': [
    'src/',
    'hub/',
    'checkpoint/',
    'corpus/',
    'prepare/',
    'embeddings/',
    'indexer/',
    'export/',
    'evaluation/',
    'bench/',
  ],
  'bench/': ['src/', 'checkpoint/', 'corpus/', 'prepare/', 'indexer/', 'evaluation/'],
  'test/': [''],
};

/** A foreign library has one door: the files that may import it. */
const DOORS: Readonly<Record<string, readonly string[]>> = {
  'onnxruntime-node': ['src/embedding/onnx-session.ts'],
  '@huggingface/tokenizers': ['src/embedding/tokenizer.ts'],
  'better-sqlite3': ['src/passages/', 'src/file-lock.ts'],
  '@huggingface/hub': ['hub/repository.ts'],
  fastify: ['src/http/'],
  typebox: ['src/'],
  '@modelcontextprotocol/sdk': ['src/http/mcp/server.ts'],
  hyparquet: ['corpus/parquet-worker.ts'],
  'hyparquet-compressors': ['corpus/parquet-worker.ts'],
  'hyparquet-writer': ['export/write-parquet.ts'],
  zstddec: ['corpus/zstd.ts'],
  '@bokuweb/zstd-wasm': ['prepare/pack.ts'],
  entities: ['prepare/rules/dpr.ts'],
  'lru-cache': ['src/retrieval/answer-cache.ts'],
  'lossless-json': ['corpus/', 'src/passages/'],
  'cli-progress': ['cli/build-progress.ts', 'cli/model-progress.ts', 'cli/prepare-progress.ts', 'cli/step-progress.ts'],
  'prom-client': ['src/http/prometheus.ts'],
  pino: ['cli/'],
  'pino-pretty': ['cli/'],
  'node:sqlite': [],
};

function within(path: string, places: readonly string[]): boolean {
  return places.some((place) => (place.endsWith('/') || place === '' ? path.startsWith(place) : path === place));
}

function ruleFor(file: SourceFile): [string, readonly string[]] {
  const rule = Object.entries(MAY_IMPORT)
    .filter(([place]) => within(file.path, [place]))
    .sort(([a], [b]) => b.length - a.length)[0];
  assert.ok(rule, `${file.path} lies in a folder that test/architecture.test.ts has no rule for`);
  return rule;
}

test('every folder imports only what its place in the pipeline allows', () => {
  for (const file of sources) {
    const [place, allowed] = ruleFor(file);
    for (const { target, ours } of file.imports) {
      if (!ours) continue;
      assert.ok(
        within(target, [place, ...allowed]),
        `${file.path} imports ${target}; ${place} may import ${allowed.join(', ') || 'nothing of ours'}`,
      );
    }
  }
});

test('a foreign library is imported through its door alone', () => {
  for (const file of sources) {
    if (file.path.startsWith('test/')) continue;
    for (const { target, ours } of file.imports) {
      const doors = ours ? undefined : DOORS[target];
      if (doors === undefined) {
        assert.ok(
          ours || target.startsWith('node:'),
          `${target} has no door yet: name one in test/architecture.test.ts`,
        );
        continue;
      }
      assert.ok(
        within(file.path, doors),
        `${file.path} imports ${target}; its door is ${doors.join(', ') || 'nowhere'}`,
      );
    }
  }
});

test('the environment is used in src/options alone, and the process is ended and signals are heard in cli', () => {
  for (const file of sources) {
    if (file.path.startsWith('test/')) continue;
    const code = withoutComments(file.text);
    if (/\bprocess\.env\b/.test(code)) assert.match(file.path, /^src\/options\//);
    if (/\bprocess\.(exit|exitCode|abort)\b|\bprocess\.\w+\('SIG/.test(code)) assert.match(file.path, /^cli\//);
  }
});

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '');
}

test('the client runs on what every JavaScript runtime has', () => {
  const files = sources.filter(({ path }) => path.startsWith('src/client/'));
  assert.ok(files.length > 3);
  for (const { path, imports, text } of files) {
    for (const { target, typeOnly } of imports) {
      assert.ok(typeOnly || target.startsWith('src/client/'), `${path} needs ${target} to run`);
    }
    assert.doesNotMatch(withoutComments(text), /\b(?:Buffer|process|require)\b/, path);
  }
});

test('errors know no HTTP', () => {
  const errors = sources.find((file) => file.path === 'src/errors.ts')!;
  assert.equal(errors.imports.length, 0);
  assert.doesNotMatch(errors.text, /\b[45]\d\d\b/);
});

test('no file reaches itself through its imports', () => {
  const byPath = new Map(sources.map((file) => [file.path, file]));
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    assert.ok(!trail.includes(path), `a cycle: ${[...trail.slice(trail.indexOf(path)), path].join(' → ')}`);
    if (done.has(path)) return;
    for (const { target, ours } of byPath.get(path)?.imports ?? []) if (ours) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const file of sources) visit(file.path, []);
});

test('the reader of imports sees every kind of import', () => {
  const worker = sources.find((file) => file.path === 'src/passages/passage-reader.ts')!;
  const targets = worker.imports.map(({ target }) => target);
  assert.ok(targets.includes('src/passages/passage-worker.ts'), 'new URL for a worker');
  assert.ok(targets.includes('node:worker_threads'), 'a module');
  assert.ok(targets.includes('src/passages/passage-protocol.ts'), 'a type');
  assert.ok(sources.length > 50);
});
