// The rules of imports: `npm run lint` checks them, and docs/architecture.md explains the folders.

/** The folders in the order of the data. A file imports from its own folder and from those above it. */
const LAYERS = [
  'src/base',
  'src/engine',
  'src/encoder',
  'src/index',
  'src/search',
  'src/server',
  'src/client',
  'src/stores',
  'corpus',
  'indexer',
  'evaluation',
  'training',
  'bench',
  'cli',
];

/** The files that may import a package. */
const DOORS = {
  '@aws-sdk/client-s3': 'indexer/sync/s3-source.ts',
  '@huggingface/hub': 'indexer/hub/repository.ts',
  '@modelcontextprotocol/sdk': 'src/server/mcp/server.ts',
  '@opensearch-project/opensearch': 'src/stores/opensearch/opensearch-client.ts',
  '@opentelemetry/(api|core|resources|sdk-trace|exporter-trace-otlp-http)': 'src/server/tracing/otlp-tracer.ts',
  '@orama/(stemmers|stopwords)': 'src/engine/lexical/analysis/snowball.ts',
  '@zilliz/milvus2-sdk-node': 'src/stores/milvus/milvus-sdk.ts',
  'better-sqlite3':
    'src/index/passages/|src/index/document-store/|src/base/system/file-lock.ts|training/replay/answer-collector.ts|training/mining/work-file.ts',
  'cli-progress': 'cli/output/progress/|cli/building/build-progress.ts',
  'csv-parse': 'evaluation/question-entries.ts',
  'd3-scale': 'bench/report/',
  entities: 'indexer/prepare/rules/dpr.ts',
  fastify: 'src/server/',
  'hyparquet(-compressors)?': 'corpus/parquet-(worker|decimals).ts',
  'hyparquet-writer': 'indexer/export/parquet-groups.ts',
  'lru-cache': 'src/search/layers/answer-cache.ts|src/engine/columns/filter-cache.ts',
  'onnxruntime-node': 'src/encoder/inference/(onnxruntime|onnx-session).ts|bench/products/products-worker.ts',
  'pino(-pretty)?': 'cli/',
  'prom-client': 'src/server/metrics/server-metrics.ts',
  typebox: 'src/|training/replay/bundle-manifest.ts|training/iteration/records.ts',
};

const packages = (names) => `^node_modules/(@types/)?(${names})/`;

module.exports = {
  forbidden: [
    { name: 'no-circle', severity: 'error', from: {}, to: { circular: true } },
    ...LAYERS.slice(0, -1).map((folder, at) => ({
      name: `${folder}-imports-nothing-below-it`,
      severity: 'error',
      from: { path: `^${folder}/` },
      to: { path: `^(${LAYERS.slice(at + 1).join('|')})/` },
    })),
    {
      name: 'the-client-needs-no-other-module',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { pathNot: '^src/client/', dependencyTypesNot: ['type-only'] },
    },
    { name: 'errors-import-nothing', severity: 'error', from: { path: '^src/base/errors.ts$' }, to: {} },
    ...Object.entries(DOORS).map(([names, files]) => ({
      name: `door-of-${names}`,
      severity: 'error',
      from: { pathNot: `^(${files})` },
      to: { path: packages(names) },
    })),
    {
      name: 'a-package-has-a-door',
      severity: 'error',
      from: {},
      to: { path: '^node_modules/', pathNot: packages(Object.keys(DOORS).join('|')) },
    },
  ],
  options: {
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^dist/' },
    enhancedResolveOptions: { extensions: ['.ts', '.js'], exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
};
