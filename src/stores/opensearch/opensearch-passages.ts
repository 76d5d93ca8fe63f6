import { MAX_CANDIDATES } from '../published/candidate-source.ts';
import type { PassageReader } from '../published/stored-passages.ts';
import { readRows } from './opensearch-candidates.ts';
import type { OpenSearchClient } from './opensearch-client.ts';
import { DOCUMENT_FIELD, ID_FIELD, lookupField, ROW_FIELD } from './stored-rows.ts';

export function openSearchPassages(client: OpenSearchClient, index: string): PassageReader {
  return {
    documents: async (rows, signal) => {
      const hits = await readRows(client, index, { rows, source: [DOCUMENT_FIELD], signal });
      return hits.map(({ _source }) => String(_source?.[DOCUMENT_FIELD]));
    },
    ids: async (rows, signal) => {
      const hits = await readRows(client, index, { rows, source: [ID_FIELD], signal });
      return hits.map(({ _source }) => (_source?.[ID_FIELD] as string | undefined) ?? null);
    },
    lookUp: async (by, hashes, signal) => {
      const field = lookupField(by);
      const found: { row: number; hash: string }[] = [];
      // Pages in the order of rows: many passages may have one title.
      for (let after: number | undefined; ; after = found.at(-1)!.row) {
        const { hits } = await client.search(
          index,
          {
            size: MAX_CANDIDATES,
            query: { terms: { [field]: hashes } },
            sort: [{ [ROW_FIELD]: 'asc' }],
            search_after: after === undefined ? undefined : [after],
            docvalue_fields: [field],
            _source: false,
          },
          signal,
        );
        found.push(...hits.map(({ sort, fields }) => ({ row: Number(sort?.[0]), hash: String(fields?.[field]?.[0]) })));
        if (hits.length < MAX_CANDIDATES) return found;
      }
    },
  };
}
