import type { Column } from '../../../engine/filter/column.ts';
import type { LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import type { RetrieverInfo } from '../../../search/retriever-info.ts';
import { illegalArgument } from '../elasticsearch-error.ts';

/** The field of the vectors of an index that has a model. */
export const VECTOR_FIELD = 'vector';

/** What a field's name stands for in one index. */
type QueriedField =
  | { readonly kind: 'text'; readonly field: LexicalField }
  | { readonly kind: 'column'; readonly column: Column }
  | { readonly kind: 'id' | 'vector' };

/**
 * The field of this name; undefined if the index has none. `title` and `text` are fields with words even if there are columns of these
 * names, which are then `title.keyword` and `text.keyword`, as in the mappings that Elasticsearch makes by itself.
 *
 * @throws ElasticsearchError for `title` and `text` of an index that has both as one field.
 */
export function queriedField(
  name: string,
  { bm25, columns, dimension, index, written }: RetrieverInfo,
): QueriedField | undefined {
  if (name === '_id') return { kind: 'id' };
  const field = bm25?.fields.find((each) => each === name);
  if (field !== undefined) return { kind: 'text', field };
  const column =
    columns.find((each) => each.name === name) ??
    columns.find((each) => each.type === 'string' && name === `${each.name}.keyword`);
  if (column !== undefined) return { kind: 'column', column };
  if (name === (written?.field ?? VECTOR_FIELD) && dimension > 0) return { kind: 'vector' };
  if ((name === 'title' || name === 'text') && bm25?.fields.includes('contents') === true) {
    throw illegalArgument(
      `The index [${index}] has title and text as one field, [contents], so [${name}] cannot be searched alone. Make its inverted ` +
        'indexes again with trawl optimize INDEX --bm25 --bm25-fields title,text.',
    );
  }
  return undefined;
}
