import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSources, type SourceFile } from './helpers/source-imports.ts';

const sources = readSources();

/** A path or the beginning of paths, and what these files may import from the repository besides each other. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'src/errors.ts': [],
  'src/metric.ts': [],
  'src/comparable-text.ts': [],
  'src/abort.ts': ['src/errors.ts'],
  'src/package-root.ts': [],
  'src/queue-clock.ts': [],
  'src/random.ts': [],
  'src/row-bitmap.ts': [],
  'src/top-k.ts': [],
  'src/time-slice.ts': ['src/abort.ts'],
  'src/transfer-retries.ts': ['src/abort.ts'],
  'src/abortable-fetch.ts': ['src/abort.ts'],
  'src/watched-fetch.ts': ['src/abort.ts', 'src/abortable-fetch.ts', 'src/transfer-retries.ts'],
  'src/retry-after.ts': [],
  'src/running-calls.ts': ['src/errors.ts'],
  'src/system/': ['src/errors.ts', 'src/abort.ts'],
  'src/options/': ['src/errors.ts'],
  'src/lexical-index/lexical-settings.ts': [],
  // The language of filters; it knows no files.
  'src/filter/': ['src/errors.ts'],
  'src/columns/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/row-bitmap.ts',
    'src/running-calls.ts',
    'src/time-slice.ts',
    'src/options/',
    'src/native/',
    'src/filter/',
  ],
  'src/manifest/': [
    'src/errors.ts',
    'src/metric.ts',
    'src/system/',
    'src/lexical-index/lexical-settings.ts',
    'src/filter/column.ts',
  ],
  // The files of an index folder; it reads manifests and no content.
  'src/index-files/': ['src/errors.ts', 'src/manifest/'],
  'src/native/': [
    'src/errors.ts',
    'src/metric.ts',
    'src/filter/column.ts',
    'src/abort.ts',
    'src/system/',
    'src/options/',
    'src/package-root.ts',
  ],
  'src/vector-index/': [
    'src/errors.ts',
    'src/metric.ts',
    'src/abort.ts',
    'src/row-bitmap.ts',
    'src/top-k.ts',
    'src/running-calls.ts',
    'src/system/',
    'src/options/',
    'src/native/',
  ],
  // How fast searches should be, from a short trial.
  'src/expected-speed/': [
    'src/errors.ts',
    'src/random.ts',
    'src/system/',
    'src/native/',
    'src/vector-index/',
    'src/embedding/text-encoder.ts',
  ],
  // Types and constants for requests and manifests; no engine.
  'src/lexical-index/bm25.ts': ['src/native/lexical-functions.ts', 'src/lexical-index/lexical-settings.ts'],
  'src/lexical-index/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/row-bitmap.ts',
    'src/top-k.ts',
    'src/running-calls.ts',
    'src/native/',
    'src/system/write-failure.ts',
  ],
  'src/lexical-index/analysis/': ['src/lexical-index/lexical-settings.ts'],
  // Traces of requests; it knows no route.
  'src/tracing/': ['src/errors.ts', 'src/system/optional-package.ts'],
  // Requests to servers of models; it knows no format.
  'src/model-server/': ['src/errors.ts', 'src/abort.ts', 'src/abortable-fetch.ts', 'src/retry-after.ts'],
  'src/embedding/': [
    'src/errors.ts',
    'src/system/',
    'src/metric.ts',
    'src/abort.ts',
    'src/manifest/',
    'src/package-root.ts',
    'src/queue-clock.ts',
    'src/model-server/',
    'src/options/onnxruntime-telemetry.ts',
    'src/options/cuda-float32.ts',
  ],
  // Encoders behind HTTP.
  'src/embedding/endpoint/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/manifest/',
    'src/model-server/',
    'src/embedding/text-encoder.ts',
    'src/embedding/model/',
    'src/embedding/inference/pooling.ts',
  ],
  // model ← tokenizer ← inference (token ids to vectors) ← pool (threads)
  'src/embedding/text-encoder.ts': ['src/errors.ts', 'src/manifest/'],
  'src/embedding/model/': ['src/errors.ts', 'src/metric.ts', 'src/manifest/', 'src/system/', 'src/package-root.ts'],
  'src/embedding/tokenizer/': [
    'src/errors.ts',
    'src/embedding/text-encoder.ts',
    'src/embedding/model/json-file.ts',
    'src/embedding/model/pair-template.ts',
  ],
  'src/embedding/inference/': [
    'src/errors.ts',
    'src/manifest/',
    'src/system/float16.ts',
    'src/options/onnxruntime-telemetry.ts',
    'src/native/',
    'src/embedding/model/',
    'src/embedding/tokenizer/',
  ],
  'src/embedding/pool/': [
    'src/errors.ts',
    'src/queue-clock.ts',
    'src/options/onnxruntime-telemetry.ts',
    'src/options/cuda-float32.ts',
    'src/embedding/text-encoder.ts',
    'src/embedding/model/',
    'src/embedding/tokenizer/',
    'src/embedding/inference/',
    'src/embedding/endpoint/endpoint-clients.ts',
  ],
  'src/passages/': ['src/errors.ts', 'src/abort.ts'],
  // Documents written over HTTP: parsed, checked and stored in a thread of their own.
  'src/document-store/': [
    'src/errors.ts',
    'src/system/durable-file.ts',
    'src/system/write-failure.ts',
    'src/lexical-index/lexical-settings.ts',
    'src/filter/column.ts',
    'src/columns/column-values.ts',
    'src/passages/exact-numbers.ts',
  ],
  // Which rows of an index are in a view; it knows no search.
  'src/views/': [
    'src/errors.ts',
    'src/row-bitmap.ts',
    'src/filter/',
    'src/columns/',
    'src/passages/',
    'evaluation/read-text-lines.ts',
  ],
  // An index in a store for vectors, whatever the store.
  'src/published/': [
    'src/errors.ts',
    'src/lexical-index/lexical-fields.ts',
    'src/lexical-index/lexical-settings.ts',
    'src/options/resolve-options.ts',
    'src/abort.ts',
    'src/metric.ts',
    'src/row-bitmap.ts',
    'src/top-k.ts',
    'src/running-calls.ts',
    'src/filter/column.ts',
    'src/columns/row-filters.ts',
    'src/manifest/',
    'src/vector-index/',
    'src/passages/',
  ],
  // Indexes in Milvus; milvus-client.ts is the door.
  'src/milvus/': [
    'src/errors.ts',
    'src/system/optional-package.ts',
    'src/options/resolve-options.ts',
    'src/abort.ts',
    'src/metric.ts',
    'src/row-bitmap.ts',
    'src/filter/bind-filter.ts',
    'src/columns/row-filters.ts',
    'src/manifest/',
    'src/passages/',
    'src/published/',
  ],
  // Indexes in OpenSearch; opensearch-client.ts is the door.
  'src/opensearch/': [
    'src/errors.ts',
    'src/options/resolve-options.ts',
    'src/system/optional-package.ts',
    'src/abort.ts',
    'src/metric.ts',
    'src/row-bitmap.ts',
    'src/running-calls.ts',
    'src/lexical-index/',
    'src/manifest/',
    'src/passages/',
    'src/published/',
  ],
  'src/rerank/': ['src/errors.ts', 'src/abort.ts', 'src/model-server/', 'src/embedding/'],
  'src/retrieval/': [
    'src/model-server/server-url.ts',
    'src/errors.ts',
    'src/metric.ts',
    'src/abort.ts',
    'src/queue-clock.ts',
    'src/system/',
    'src/manifest/',
    'src/embedding/',
    'src/row-bitmap.ts',
    'src/running-calls.ts',
    'src/time-slice.ts',
    'src/native/',
    'src/vector-index/',
    'src/lexical-index/',
    'src/passages/',
    'src/filter/',
    'src/columns/',
    'src/views/',
    'src/milvus/',
    'src/opensearch/',
    'src/published/',
    'src/rerank/',
  ],
  // A running Trawl server as a source of searches.
  'src/trawl-server/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/abortable-fetch.ts',
    'src/client/retry.ts',
    'src/model-server/server-url.ts',
    'src/filter/column.ts',
    'src/passages/exact-numbers.ts',
    'src/rerank/rerank-api.ts',
    'src/rerank/reranker.ts',
    'src/retrieval/search-source.ts',
    'src/retrieval/search-mode.ts',
    'src/retrieval/embedded-query.ts',
    'src/retrieval/timings.ts',
    'src/retrieval/calls/',
  ],
  'src/recording/': [
    'src/errors.ts',
    'src/system/durable-file.ts',
    'src/embedding/text-encoder.ts',
    'src/manifest/model-identity.ts',
    'src/filter/filter.ts',
    'src/passages/document-fields.ts',
    'src/retrieval/calls/',
    'src/retrieval/search-mode.ts',
    'src/retrieval/hybrid/hybrid-fusion.ts',
    'src/retrieval/hybrid/hybrid-settings.ts',
    'src/lexical-index/bm25.ts',
  ],
  // Changes, delays and fails searches on purpose; it knows no HTTP and no files.
  'src/perturbation/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/time-slice.ts',
    'src/row-bitmap.ts',
    'src/embedding/text-encoder.ts',
    'src/lexical-index/lexical-query.ts',
    'src/retrieval/calls/',
    'src/retrieval/deepening.ts',
    'src/retrieval/embedded-query.ts',
    'src/retrieval/layers/passing-retriever.ts',
    'src/retrieval/retriever.ts',
  ],
  'src/http/': [
    'src/errors.ts',
    'src/tracing/tracer.ts',
    'src/perturbation/',
    'src/recording/',
    'src/abort.ts',
    'src/package-root.ts',
    'src/time-slice.ts',
    'src/rerank/rank-by-score.ts',
    'src/rerank/reranker.ts',
    'src/retrieval/retriever.ts',
    'src/retrieval/retriever-info.ts',
    'src/retrieval/retriever-statistics.ts',
    'src/retrieval/search-mode.ts',
    'src/retrieval/calls/',
    'src/retrieval/timings.ts',
    'src/retrieval/deepening.ts',
    'src/retrieval/hybrid/explain-fusion.ts',
    'src/retrieval/group/group-retriever.ts',
    'src/retrieval/hybrid/hybrid-fusion.ts',
    'src/retrieval/hybrid/hybrid-settings.ts',
    'src/retrieval/statistics-sum.ts',
    'src/retrieval/layers/narrowed-retriever.ts',
    'src/lexical-index/bm25.ts',
    'src/filter/',
    'src/embedding/text-encoder.ts',
    'src/manifest/model-identity.ts',
    'src/passages/contents.ts',
    'src/passages/document-fields.ts',
    'src/document-store/writable-indexes.ts',
    'src/passages/title-forms.ts',
    'src/views/view-definition.ts',
    'src/views/unknown-view.ts',
    'src/index-files/',
    'evaluation/answer-match.ts',
  ],
  // Its queries become query trees, and `_source` keeps the notation of numbers.
  'src/http/elasticsearch/': [
    'src/errors.ts',
    'src/http/',
    'src/recording/recorded-search.ts',
    'src/retrieval/retriever.ts',
    'src/retrieval/retriever-info.ts',
    'src/retrieval/calls/',
    'src/retrieval/timings.ts',
    'src/retrieval/trees/tree-order.ts',
    'src/filter/',
    'src/metric.ts',
    'src/row-bitmap.ts',
    'src/time-slice.ts',
    'src/lexical-index/bm25.ts',
    'src/lexical-index/analysis/analysers.ts',
    'src/columns/column-values.ts',
    'src/lexical-index/lexical-query.ts',
    'src/lexical-index/lexical-settings.ts',
    'src/passages/document-fields.ts',
    'src/passages/exact-numbers.ts',
    'src/document-store/',
  ],
  // Types only: see the test of the client below.
  'src/client/': [
    'src/http/dialects/native-search.ts',
    'src/http/dialects/native-passages.ts',
    'src/http/dialects/native-score.ts',
    'src/http/routes/native.ts',
  ],
  'src/index.ts': ['src/'],
  'model-import/': [
    'src/errors.ts',
    'src/system/',
    'src/abort.ts',
    'src/manifest/',
    'src/embedding/',
    'src/package-root.ts',
  ],
  'hub/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/retry-after.ts',
    'src/watched-fetch.ts',
    'src/transfer-retries.ts',
    'src/system/',
    'src/options/',
  ],
  'corpus/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/passages/contents.ts',
    'src/passages/exact-numbers.ts',
    'src/passages/id-column.ts',
  ],
  'prepare/': ['src/errors.ts', 'src/abort.ts', 'src/system/', 'src/embedding/', 'corpus/'],
  'export/': [
    'src/errors.ts',
    'src/metric.ts',
    'src/abort.ts',
    'src/manifest/',
    'src/row-bitmap.ts',
    'src/native/',
    'src/lexical-index/',
    'src/vector-index/',
    'src/passages/',
    'src/retrieval/opening/index-directory.ts',
    'corpus/',
    'prepare/pack.ts',
    'src/system/',
  ],
  // Loads an index into Milvus or OpenSearch.
  'publish/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/metric.ts',
    'src/row-bitmap.ts',
    'src/columns/column-file.ts',
    'src/lexical-index/',
    'src/manifest/',
    'src/milvus/',
    'src/opensearch/',
    'src/published/',
    'src/passages/',
    'src/vector-index/',
    'src/retrieval/opening/index-directory.ts',
  ],
  // Ids of questions keep integers of any size.
  'evaluation/': ['src/errors.ts', 'src/random.ts', 'corpus/parse-json.ts'],
  // Asks any server's questions; a dialect a file.
  'evaluation/server/': ['src/errors.ts', 'src/passages/exact-numbers.ts', 'src/trawl-server/repeated-request.ts'],
  'bulk-search/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/system/',
    'src/embedding/text-encoder.ts',
    'src/manifest/model-identity.ts',
    'src/passages/',
    'src/retrieval/',
    'src/vector-index/vector-segments.ts',
    'corpus/',
    'vector-files/',
    'export/parquet-groups.ts',
    'evaluation/',
  ],
  'replay/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/package-root.ts',
    'src/running-calls.ts',
    'src/system/',
    'src/manifest/',
    'src/filter/',
    'src/passages/',
    'src/embedding/text-encoder.ts',
    'src/retrieval/',
    'src/recording/answer-facts.ts',
    'src/recording/composed-query.ts',
    'evaluation/answer-match.ts',
    'evaluation/read-questions.ts',
    'src/trawl-server/',
    'records/',
  ],
  'records/': [
    'src/errors.ts',
    'src/comparable-text.ts',
    'src/abort.ts',
    'src/system/',
    'src/passages/exact-numbers.ts',
    'src/recording/composed-query.ts',
    'src/recording/query-origin.ts',
    'corpus/',
  ],
  'trajectories/': [
    'src/errors.ts',
    'src/comparable-text.ts',
    'src/abort.ts',
    'src/row-bitmap.ts',
    'src/system/',
    'src/embedding/text-encoder.ts',
    'src/passages/contents.ts',
    'src/passages/id-column.ts',
    'src/retrieval/calls/',
    'src/retrieval/search-source.ts',
    'src/recording/composed-query.ts',
    'src/manifest/model-identity.ts',
    'corpus/',
    'evaluation/',
    'records/',
  ],
  // Training rows from searches.
  'mining/': [
    'src/errors.ts',
    'src/comparable-text.ts',
    'src/abort.ts',
    'src/system/',
    'src/embedding/text-encoder.ts',
    'src/passages/document-fields.ts',
    'src/retrieval/calls/',
    'src/retrieval/search-source.ts',
    'src/retrieval/search-mode.ts',
    'src/recording/composed-query.ts',
    'export/parquet-groups.ts',
    'evaluation/',
    'records/',
  ],
  // A model tried on a part of an index.
  'triage/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/random.ts',
    'src/row-bitmap.ts',
    'src/system/',
    'src/native/kernel.ts',
    'src/embedding/text-encoder.ts',
    'src/manifest/model-identity.ts',
    'src/passages/document-fields.ts',
    'src/recording/composed-query.ts',
    'src/retrieval/calls/',
    'src/retrieval/retriever.ts',
    'src/retrieval/search-mode.ts',
    'src/vector-index/',
    'corpus/',
    'evaluation/',
    'records/',
    'bulk-search/in-order.ts',
    'indexer/building/shard-vectors.ts',
  ],
  // State and decisions of the training loop; `cli/iterate/` brings the work of its steps.
  'iteration/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/system/',
    'src/manifest/',
    'src/embedding/model/',
    'src/retrieval/opening/open-index-encoder.ts',
    'src/client/',
    'corpus/',
    'model-import/',
  ],
  // A swap of an index on one server after another; `cli/admin/` brings the questions.
  'rollout/': ['src/errors.ts', 'src/abort.ts', 'src/client/', 'iteration/served-index.ts'],
  // Copies of an index and where they come from.
  'sync/': [
    'src/errors.ts',
    'src/abort.ts',
    'src/retry-after.ts',
    'src/watched-fetch.ts',
    'src/transfer-retries.ts',
    'src/system/',
    'src/manifest/',
    'src/index-files/',
    'src/retrieval/opening/index-directory.ts',
    'indexer/building/build-lock.ts',
    'indexer/verify/',
  ],
  'vector-files/': ['src/errors.ts', 'src/metric.ts', 'src/vector-index/'],
  'indexer/': [
    'src/system/',
    'src/errors.ts',
    'src/metric.ts',
    'src/abort.ts',
    'src/package-root.ts',
    'src/manifest/',
    'src/embedding/',
    'src/row-bitmap.ts',
    'src/native/',
    'src/lexical-index/',
    'src/vector-index/',
    'src/passages/',
    'src/retrieval/',
    'src/filter/',
    'src/columns/',
    'corpus/',
    'vector-files/',
  ],
  'cli/': [
    'src/',
    'hub/',
    'model-import/',
    'corpus/',
    'prepare/',
    'vector-files/',
    'indexer/',
    'export/',
    'publish/',
    'evaluation/',
    'bulk-search/',
    'records/',
    'trajectories/',
    'mining/',
    'triage/',
    'iteration/',
    'sync/',
    'rollout/',
    'bench/',
    'replay/',
  ],
  'bench/': ['src/', 'model-import/', 'corpus/', 'prepare/', 'indexer/', 'evaluation/', 'bulk-search/', 'triage/'],
  'test/': [''],
};

/** The files that may import an external library. */
const LIBRARY_IMPORTERS: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    ['api', 'core', 'resources', 'sdk-trace', 'exporter-trace-otlp-http'].map((name) => [
      `@opentelemetry/${name}`,
      ['src/tracing/otlp-tracer.ts'],
    ]),
  ),
  'onnxruntime-node': [
    'src/embedding/inference/onnxruntime.ts',
    'src/embedding/inference/onnx-session.ts',
    'bench/products/products-worker.ts',
  ],
  '@huggingface/tokenizers': ['src/embedding/tokenizer/tokenizer.ts'],
  'better-sqlite3': [
    'src/passages/',
    'src/document-store/document-store.ts',
    'src/system/file-lock.ts',
    'replay/answer-collector.ts',
    'mining/work-file.ts',
  ],
  '@huggingface/hub': ['hub/repository.ts'],
  '@opensearch-project/opensearch': ['src/opensearch/opensearch-client.ts'],
  '@zilliz/milvus2-sdk-node': ['src/milvus/milvus-client.ts'],
  fastify: ['src/http/'],
  typebox: ['src/', 'replay/bundle-manifest.ts', 'iteration/records.ts'],
  '@orama/stemmers': ['src/lexical-index/analysis/snowball.ts'],
  '@orama/stopwords': ['src/lexical-index/analysis/snowball.ts'],
  '@modelcontextprotocol/sdk': ['src/http/mcp/server.ts'],
  hyparquet: ['corpus/parquet-worker.ts'],
  'hyparquet-compressors': ['corpus/parquet-worker.ts'],
  'hyparquet-writer': ['export/parquet-groups.ts'],
  entities: ['prepare/rules/dpr.ts'],
  'csv-parse': ['evaluation/formats/delimited.ts'],
  'd3-scale': ['bench/report/plot-frame.ts', 'bench/report/bar-plot.ts'],
  '@aws-sdk/client-s3': ['sync/s3-client.ts'],
  'lru-cache': ['src/retrieval/layers/answer-cache.ts', 'src/columns/filter-cache.ts'],
  'cli-progress': [
    'cli/building/build-progress.ts',
    'cli/progress/model-progress.ts',
    'cli/progress/prepare-progress.ts',
    'cli/progress/step-progress.ts',
  ],
  'prom-client': ['src/http/metrics/prometheus.ts'],
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
  assert.ok(rule, `test/architecture.test.ts has no rule for ${file.path}`);
  return rule;
}

test('every folder imports only the folders that MAY_IMPORT lists', () => {
  for (const file of sources) {
    const [place, allowed] = ruleFor(file);
    for (const { target, internal } of file.imports) {
      if (!internal) continue;
      assert.ok(
        within(target, [place, ...allowed]),
        `${file.path} imports ${target}; ${place} may import ${allowed.join(', ') || 'no other file'}`,
      );
    }
  }
});

test('an external library is imported only by the files that LIBRARY_IMPORTERS lists', () => {
  for (const file of sources) {
    if (file.path.startsWith('test/')) continue;
    for (const { target, internal } of file.imports) {
      const importers = internal ? undefined : LIBRARY_IMPORTERS[target];
      if (importers === undefined) {
        assert.ok(
          internal || target.startsWith('node:'),
          `${target} is new: add it to LIBRARY_IMPORTERS in test/architecture.test.ts`,
        );
        continue;
      }
      assert.ok(
        within(file.path, importers),
        `${file.path} imports ${target}; only ${importers.join(', ') || 'no file'} may`,
      );
    }
  }
});

test('only src/options reads the environment, and only cli ends the process and handles signals', () => {
  for (const file of sources) {
    if (file.path.startsWith('test/')) continue;
    const code = withoutComments(file.text);
    if (/\bprocess\.env\b/.test(code)) assert.match(file.path, /^src\/options\//);
    if (/\bprocess\.(exit|exitCode|abort)\b|\bprocess\.\w+\('SIG/.test(code)) assert.match(file.path, /^cli\//);
  }
});

test('a route that leases a retriever limits it to the views of the request', () => {
  const leasing = sources.filter(
    ({ path, text }) =>
      path.startsWith('src/http/') && !path.startsWith('src/http/indexes/') && /\.lease(?:All)?\(/.test(text),
  );
  assert.ok(leasing.length > 3);
  for (const { path, text } of leasing) assert.match(text, /\bretrieverFor\(/, path);
});

test('only src/system counts cores, because it respects the CPU quota of a container', () => {
  for (const file of sources) {
    if (file.path.startsWith('test/') || file.path.startsWith('src/system/')) continue;
    assert.doesNotMatch(withoutComments(file.text), /\b(?:availableParallelism|hardwareConcurrency)\b/, file.path);
  }
});

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '');
}

test('the client needs no other module and no API of Node.js', () => {
  const files = sources.filter(({ path }) => path.startsWith('src/client/'));
  assert.ok(files.length > 3);
  for (const { path, imports, text } of files) {
    for (const { target, typeOnly } of imports) {
      assert.ok(typeOnly || target.startsWith('src/client/'), `${path} needs ${target} to run`);
    }
    assert.doesNotMatch(withoutComments(text), /\b(?:Buffer|process|require)\b/, path);
  }
});

test('src/errors.ts has no HTTP status codes and imports nothing', () => {
  const errors = sources.find((file) => file.path === 'src/errors.ts')!;
  assert.equal(errors.imports.length, 0);
  assert.doesNotMatch(errors.text, /\b[45]\d\d\b/);
});

test('there are no import cycles', () => {
  const byPath = new Map(sources.map((file) => [file.path, file]));
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    assert.ok(!trail.includes(path), `import cycle: ${[...trail.slice(trail.indexOf(path)), path].join(' → ')}`);
    if (done.has(path)) return;
    for (const { target, internal } of byPath.get(path)?.imports ?? []) if (internal) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const file of sources) visit(file.path, []);
});

test('readSources finds imports of modules, types and workers', () => {
  const worker = sources.find((file) => file.path === 'src/passages/passage-reader.ts')!;
  const targets = worker.imports.map(({ target }) => target);
  assert.ok(targets.includes('src/passages/passage-worker.ts'), 'new URL for a worker');
  assert.ok(targets.includes('node:worker_threads'), 'a module');
  assert.ok(targets.includes('src/passages/passage-protocol.ts'), 'a type');
  assert.ok(sources.length > 50);
});
