import type { LexicalFields, LexicalIndex } from '../../src/engine/lexical/lexical-index.ts';

/** An index of one field, contents, which no query over several fields may search. */
export function oneField(contents: LexicalIndex): LexicalFields {
  return {
    rows: contents.rows,
    mappedBytes: contents.mappedBytes,
    indexes: new Map([['contents', contents]]),
    search: () => Promise.reject(new Error('an index of one field is searched by texts')),
    close: () => contents.close(),
  };
}
