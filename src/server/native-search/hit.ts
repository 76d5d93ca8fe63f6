import { Type } from 'typebox';
import type { ExplainedTerm } from '../../search/calls/lookup-calls.ts';
import type { HybridPlaces } from '../../search/hybrid/hybrid-fusion.ts';
import { Contents, Document, Score } from '../dialects/parts/common-fields.ts';
import { excerpt } from '../excerpt.ts';
import { HitTerm } from './explain.ts';
import type { Candidate } from './fusion.ts';
import { HybridHitFields } from './hybrid-field.ts';

/** The fields of a hit in a reply. */
export const HitFields = {
  index: Type.Optional(
    Type.String({ description: 'With several indexes: the index of the passage. Absent with one index.' }),
  ),
  row: Type.Integer({ description: "The passage's row in its index, from 0." }),
  id: Type.Optional(Type.Unknown({ description: 'As in the corpus; absent if the passage has none.' })),
  title: Type.Optional(Type.String()),
  score: Score,
  indexScore: Type.Optional(
    Type.Number({
      description:
        "With several indexes: the passage's score in its index. score differs from it where the lists were fused by rank.",
    }),
  ),
  ...HybridHitFields,
  firstStage: Type.Optional(
    Type.Object(
      { rank: Type.Integer({ description: 'From 1.' }), score: Score },
      {
        description:
          "With reranking: rank and score of the hit in the search; score is then the reranker's. Absent without reranking.",
      },
    ),
  ),
  terms: Type.Optional(
    Type.Array(HitTerm, {
      description:
        'With explain: the terms of the query that the passage has, in the order of the query. Absent without explain.',
    }),
  ),
  distractor: Type.Optional(
    Type.Literal(true, {
      description: 'No search found the passage: the server mixed it in on purpose, with the score of a neighbour.',
    }),
  ),
  text: Contents,
  whole: Type.Boolean({ description: 'False if text is an excerpt.' }),
  document: Type.Optional(Document),
};

/** A hit's JSON without its closing brace. */
export function hitJson(
  { hit, fields }: Candidate,
  {
    words,
    maxChars,
    documents,
    terms,
    places = hit.places,
  }: {
    words: ReadonlySet<string> | undefined;
    maxChars: number | null;
    documents: boolean;
    terms: readonly ExplainedTerm[] | undefined;
    /** In place of those of the hit. */
    places?: HybridPlaces;
  },
): string {
  const { text, whole } =
    maxChars === null || words === undefined
      ? { text: fields.contents, whole: true }
      : excerpt(fields.contents, words, maxChars);
  const id = fields.idJson === undefined ? '' : `,"id":${fields.idJson}`;
  const title = fields.title === undefined ? '' : `,"title":${JSON.stringify(fields.title)}`;
  const lists = places === undefined ? '' : `,${JSON.stringify(places).slice(1, -1)}`;
  const parts = terms === undefined ? '' : `,"terms":${JSON.stringify(terms)}`;
  const own = hit.source === undefined ? '' : `,"indexScore":${JSON.stringify(hit.source.score)}`;
  const first = hit.firstStage === undefined ? '' : `,"firstStage":${JSON.stringify(hit.firstStage)}`;
  const score = `"score":${JSON.stringify(hit.score)}${own}${first}${lists}${parts}`;
  const mixedIn = hit.distractor === true ? ',"distractor":true' : '';
  const rest = `,${score}${mixedIn},"text":${JSON.stringify(text)},"whole":${whole}`;
  const { source } = hit;
  const place =
    source === undefined ? `"row":${hit.row}` : `"index":${JSON.stringify(source.index)},"row":${source.row}`;
  return `{${place}${id}${title}${rest}${documents ? `,"document":${hit.document}` : ''}`;
}
