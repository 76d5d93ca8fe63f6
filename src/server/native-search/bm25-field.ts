import { type Static, Type } from 'typebox';
import { BM25_PROFILES, type Bm25Ranking, DEFAULT_BM25 } from '../../engine/lexical/bm25.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { BM25_ORDERS } from '../../search/search-mode.ts';

const Weight = Type.Number({ minimum: 0, maximum: 1_000_000 });

/** The field `bm25` of a request. */
export const Bm25Field = Type.Object(
  {
    k1: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
    b: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    profile: Type.Optional(
      Type.Enum(['lucene', 'elasticsearch'], {
        description:
          "The parameters of another system: lucene (Lucene's formula with the defaults of Anserini and Pyserini, k1 0.9 and b 0.4; Lucene's own are 1.2 and 0.75) or elasticsearch (k1 1.2, b 0.75, scores multiplied by k1 + 1). k1 and b override the profile.",
      }),
    ),
    order: Type.Optional(
      Type.Enum([...BM25_ORDERS], {
        description:
          "How hits with equal scores are ordered: row (by row; the scores are exact) or pyserini (by id as text, and with Pyserini's rounded scores). Absent: the order of the server.",
      }),
    ),
    weights: Type.Optional(
      Type.Object(
        { title: Type.Optional(Weight), text: Type.Optional(Weight) },
        {
          additionalProperties: false,
          description:
            'Weights of the fields, for an index with title and text as two fields: the best field of a passage gives its score. 0: the field is not searched. Absent: 1.',
        },
      ),
    ),
    tieBreaker: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description:
          'Share of the score in the other field that is added, for an index with title and text as two fields. Absent: 0; 1 adds both scores.',
      }),
    ),
  },
  { additionalProperties: false },
);

/** The BM25 parameters of a request; undefined: the parameters of the index. */
export function bm25Ranking(given: Static<typeof Bm25Field> | null, { bm25 }: RetrieverInfo): Bm25Ranking | undefined {
  if (given === null) return undefined;
  const { profile, order: _, ...values } = given;
  const ofIndex = bm25 === null ? DEFAULT_BM25 : { ...DEFAULT_BM25, k1: bm25.k1, b: bm25.b };
  return { ...(profile === undefined ? ofIndex : BM25_PROFILES[profile]), ...values };
}
