import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSources } from '../helpers/source-imports.ts';
import { within } from './paths.ts';

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
  '@zilliz/milvus2-sdk-node': ['src/milvus/milvus-sdk.ts'],
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

test('an external library is imported only by the files that LIBRARY_IMPORTERS lists', () => {
  for (const file of readSources()) {
    if (file.path.startsWith('test/')) continue;
    for (const { target, internal } of file.imports) {
      const importers = internal ? undefined : LIBRARY_IMPORTERS[target];
      if (importers === undefined) {
        assert.ok(
          internal || target.startsWith('node:'),
          `${target} is new: add it to LIBRARY_IMPORTERS in test/architecture/libraries.test.ts`,
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
