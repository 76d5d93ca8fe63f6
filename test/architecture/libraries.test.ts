import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSources } from '../helpers/source-imports.ts';
import { within } from './paths.ts';

/** The files that may import an external library. */
const LIBRARY_IMPORTERS: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    ['api', 'core', 'resources', 'sdk-trace', 'exporter-trace-otlp-http'].map((name) => [
      `@opentelemetry/${name}`,
      ['src/server/tracing/otlp-tracer.ts'],
    ]),
  ),
  'onnxruntime-node': [
    'src/encoder/inference/onnxruntime.ts',
    'src/encoder/inference/onnx-session.ts',
    'bench/products/products-worker.ts',
  ],
  '@huggingface/tokenizers': ['src/encoder/tokenizer/tokenizer.ts'],
  'better-sqlite3': [
    'src/index/passages/',
    'src/index/document-store/document-store.ts',
    'src/base/system/file-lock.ts',
    'training/replay/answer-collector.ts',
    'training/mining/work-file.ts',
  ],
  '@huggingface/hub': ['indexer/hub/repository.ts'],
  '@opensearch-project/opensearch': ['src/stores/opensearch/opensearch-client.ts'],
  '@zilliz/milvus2-sdk-node': ['src/stores/milvus/milvus-sdk.ts'],
  fastify: ['src/server/'],
  typebox: ['src/', 'training/replay/bundle-manifest.ts', 'training/iteration/records.ts'],
  '@orama/stemmers': ['src/engine/lexical/analysis/snowball.ts'],
  '@orama/stopwords': ['src/engine/lexical/analysis/snowball.ts'],
  '@modelcontextprotocol/sdk': ['src/server/mcp/server.ts'],
  hyparquet: ['corpus/parquet-worker.ts'],
  'hyparquet-compressors': ['corpus/parquet-worker.ts'],
  'hyparquet-writer': ['indexer/export/parquet-groups.ts'],
  entities: ['indexer/prepare/rules/dpr.ts'],
  'csv-parse': ['evaluation/formats/delimited.ts'],
  'd3-scale': ['bench/report/plot-frame.ts', 'bench/report/bar-plot.ts'],
  '@aws-sdk/client-s3': ['indexer/sync/s3-client.ts'],
  'lru-cache': ['src/search/layers/answer-cache.ts', 'src/engine/columns/filter-cache.ts'],
  'cli-progress': [
    'cli/building/build-progress.ts',
    'cli/output/progress/model-progress.ts',
    'cli/output/progress/prepare-progress.ts',
    'cli/output/progress/step-progress.ts',
  ],
  'prom-client': ['src/server/metrics/prometheus.ts'],
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
