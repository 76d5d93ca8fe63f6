import type { ImportRules } from './import-rules.ts';

/** What an index has besides its engine, and indexes in stores. */
export const INDEXES: ImportRules = {
  'src/passages/': ['src/errors.ts', 'src/abort.ts'],
  // Documents written over HTTP: parsed, checked and stored in a thread of their own.
  'src/document-store/': [
    'src/errors.ts',
    'src/is-object.ts',
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
    'src/is-object.ts',
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
    'src/in-parallel.ts',
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
};
