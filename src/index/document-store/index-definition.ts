import { type Static, Type } from 'typebox';
import { COLUMN_TYPES } from '../../engine/filter/column.ts';
import { ANALYSERS, LEXICAL_FIELDS } from '../../engine/lexical/lexical-settings.ts';

/** What an index was created with over HTTP. Stored as JSON beside its documents. */
export const IndexDefinition = Type.Object({
  format: Type.Literal('trawl-writable-index'),
  version: Type.Literal(1),
  name: Type.String(),
  uuid: Type.String(),
  /** Milliseconds since 1970. */
  createdAt: Type.Number(),
  /** The members of a document whose words can be searched. */
  fields: Type.Array(Type.Enum([...LEXICAL_FIELDS])),
  analyser: Type.Enum([...ANALYSERS]),
  /** The members of a document that filters can name. */
  columns: Type.Array(
    Type.Object({
      name: Type.String(),
      type: Type.Enum([...COLUMN_TYPES]),
      /** Whether its numbers are whole, as of Elasticsearch's `long`. */
      integer: Type.Boolean(),
    }),
  ),
  /** Whether a document with members that are not mapped is refused. */
  strict: Type.Boolean(),
  /** The mapping as requests for it are answered. */
  properties: Type.Record(Type.String(), Type.Unknown()),
  settings: Type.Object({
    shards: Type.Integer(),
    replicas: Type.Integer(),
    /** Time between a write and its refresh in milliseconds; -1: only requests refresh. */
    refreshMs: Type.Integer(),
    /** The same as the client wrote it; absent if it did not. */
    refreshInterval: Type.Optional(Type.String()),
  }),
});
export type IndexDefinition = Static<typeof IndexDefinition>;
