import type { ImportRules } from './import-rules.ts';

/** What an index has besides its engine, and indexes in stores. */
export const INDEXES: ImportRules = {
  'src/index/passages/': ['src/base/errors.ts', 'src/base/abort.ts'],
  // Documents written over HTTP: parsed, checked and stored in a thread of their own.
  'src/index/document-store/': [
    'src/base/errors.ts',
    'src/base/is-object.ts',
    'src/base/system/durable-file.ts',
    'src/base/system/write-failure.ts',
    'src/engine/lexical/lexical-settings.ts',
    'src/engine/filter/column.ts',
    'src/engine/columns/column-values.ts',
    'src/index/passages/exact-numbers.ts',
  ],
  // Which rows of an index are in a view; it knows no search.
  'src/index/views/': [
    'src/base/errors.ts',
    'src/base/is-object.ts',
    'src/engine/row-bitmap.ts',
    'src/engine/filter/',
    'src/engine/columns/',
    'src/index/passages/',
    'src/base/files/read-text-lines.ts',
  ],
  // An index in a store for vectors, whatever the store.
  'src/stores/published/': [
    'src/base/errors.ts',
    'src/engine/lexical/lexical-fields.ts',
    'src/engine/lexical/lexical-settings.ts',
    'src/base/options/resolve-options.ts',
    'src/base/abort.ts',
    'src/engine/metric.ts',
    'src/engine/row-bitmap.ts',
    'src/engine/top-k.ts',
    'src/base/running-calls.ts',
    'src/base/in-parallel.ts',
    'src/engine/filter/column.ts',
    'src/engine/columns/row-filters.ts',
    'src/index/manifest/',
    'src/engine/vectors/',
    'src/index/passages/',
  ],
  // Indexes in Milvus; milvus-client.ts is the door.
  'src/stores/milvus/': [
    'src/base/errors.ts',
    'src/base/system/optional-package.ts',
    'src/base/options/resolve-options.ts',
    'src/base/abort.ts',
    'src/engine/metric.ts',
    'src/engine/row-bitmap.ts',
    'src/engine/filter/bind-filter.ts',
    'src/engine/columns/row-filters.ts',
    'src/index/manifest/',
    'src/index/passages/',
    'src/stores/published/',
  ],
  // Indexes in OpenSearch; opensearch-client.ts is the door.
  'src/stores/opensearch/': [
    'src/base/errors.ts',
    'src/base/options/resolve-options.ts',
    'src/base/system/optional-package.ts',
    'src/base/abort.ts',
    'src/engine/metric.ts',
    'src/engine/row-bitmap.ts',
    'src/base/running-calls.ts',
    'src/engine/lexical/',
    'src/index/manifest/',
    'src/index/passages/',
    'src/stores/published/',
  ],
};
