import { Type } from 'typebox';
import { TimeSlice } from '../../base/time-slice.ts';
import { withContents } from '../../index/passages/contents.ts';
import type { FoundPassage } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { addTimings } from '../../search/timings.ts';
import {
  CUT_UNITS,
  cutDocuments,
  type DocumentCut,
  documentsOfPassages,
  openingOf,
  type WholeDocument,
} from '../documents/whole-document.ts';
import {
  MAX_SAME_ID,
  PassageIds,
  PassageRows,
  passagesNamed,
  refuseTooManyPassages,
} from '../native-search/named-passages.ts';
import { View, viewMember } from '../native-search/reply.ts';
import { defineDialect } from './dialect.ts';
import { Document, nullable, refuse } from './parts/common-fields.ts';
import { separated } from './parts/search-plan.ts';

const Passage = Type.Object({
  row: Type.Integer({ description: "The passage's row in the index." }),
  document: Document,
  sameId: Type.Optional(
    Type.Array(Type.Integer(), {
      description: 'Of a passage that was named by its id: further rows with that id, if any.',
    }),
  ),
});

const Whole = Type.Object({
  id: Type.String({ description: 'The id of the document, or else of its first passage, or its URL, title or row.' }),
  url: Type.String({ description: 'The column url, or trawl://INDEX/ID.' }),
  title: Type.String(),
  text: Type.String({ description: 'The joined texts of the passages.' }),
  whole: Type.Boolean({ description: 'False if the document is longer than text.' }),
  rows: Type.Array(Type.Integer(), { description: 'Rows of the joined passages.' }),
});

const Most = (what: string) => Type.Optional(Type.Integer({ minimum: 1, description: `The first ${what}.` }));

const Cut = nullable(
  Type.Object(
    {
      words: Most('words'),
      characters: Most('characters'),
      tokens: Most("tokens of the index's tokenizer, or of the one that the server was started with"),
    },
    { additionalProperties: false },
  ),
  'With wholeDocuments: how much of each text is returned; exactly one of the fields.',
);

/** Many passages by id or row in one request, and the documents that they belong to. */
export const nativePassages = defineDialect({
  name: 'native-passages',
  path: '/v1/passages',
  summary: 'Many passages by id or row, and their whole documents',
  request: Type.Object(
    {
      ids: PassageIds,
      rows: PassageRows,
      wholeDocuments: Type.Boolean({ default: false, description: 'Whether the reply has the documents too.' }),
      cut: Cut,
      index: nullable(Type.String(), 'Name of the index. Absent: the index in the URL, or the default.'),
    },
    { additionalProperties: false },
  ),
  reply: Type.Object({
    index: Type.Object({ name: Type.String(), generation: Type.String() }),
    view: Type.Optional(View),
    passages: Type.Array(Type.Union([Passage, Type.Null({ description: 'No passage has that id or row.' })]), {
      description: 'In the order of ids, then of rows. Of passages with the same id the first.',
    }),
    documents: Type.Optional(
      Type.Array(Type.Union([Whole, Type.Null()]), {
        description: 'With wholeDocuments: the document of each passage, in the same order.',
      }),
    ),
  }),
  example: { ids: ['s-0001', 's-0003'], rows: [7], wholeDocuments: true },
  plan({ ids, rows, wholeDocuments, cut: wanted, index }, limits) {
    const count = ids.length + rows.length;
    refuseTooManyPassages(count, limits);
    const cut = wanted === null ? undefined : documentCut(wanted);
    if (cut !== undefined && !wholeDocuments) refuse(['cut'], 'Has no effect without wholeDocuments');
    return {
      queries: count,
      k: 1,
      index,
      async run(retriever, signal) {
        const named = await passagesNamed(retriever, { ids, rows, limit: MAX_SAME_ID }, signal);
        const { passages, sameId } = named;
        const found = passages.filter((passage) => passage !== undefined);
        const limit = Math.max(1, Math.min(limits.maxK, Math.floor(limits.maxHits / Math.max(1, found.length))));
        const options = { limit, signal, slice: new TimeSlice(signal) };
        let { timings } = named;
        let documents: readonly WholeDocument[] | undefined;
        if (wholeDocuments) {
          const joined = await documentsOfPassages(retriever, found, options);
          timings = addTimings(timings, joined.timings);
          ({ documents } = joined);
        }
        if (documents !== undefined && cut !== undefined) {
          const short = await cutDocuments(retriever, documents, cut, options);
          timings = addTimings(timings, short.timings);
          ({ documents } = short);
        }
        const names = [...ids.map(String), ...rows.map((row) => `row ${row}`)];
        return {
          timings,
          openings: names.map((name, i) => openingOf(name, passages[i] === undefined ? [] : [passages[i]])),
          pieces: reply(retriever.info, passages, sameId, documents),
        };
      },
    };
  },
});

/** @param documents of the passages that are not undefined, in their order. */
function* reply(
  info: RetrieverInfo,
  passages: readonly (FoundPassage | undefined)[],
  sameId: readonly (readonly number[])[],
  documents: readonly WholeDocument[] | undefined,
): Generator<string> {
  const index = JSON.stringify({ name: info.index, generation: info.generation });
  yield `{"index":${index}${viewMember(info)},"passages":[`;
  yield* separated(passages, (passage, i) => {
    if (passage === undefined) return 'null';
    const others = sameId[i]!.length === 0 ? '' : `,"sameId":[${sameId[i]!.join(',')}]`;
    return `{"row":${passage.row},"document":${withContents(passage.document)}${others}}`;
  });
  if (documents !== undefined) {
    yield '],"documents":[';
    let next = 0;
    yield* separated(passages, (passage) => {
      if (passage === undefined) return 'null';
      const { id, url, title, text, isCut, rows } = documents[next++]!;
      return JSON.stringify({ id, url, title, text, whole: !isCut, rows });
    });
  }
  yield ']}';
}

/** @throws RequestError unless exactly one unit is given. */
function documentCut(wanted: Readonly<Partial<Record<DocumentCut['unit'], number>>>): DocumentCut {
  const given = CUT_UNITS.flatMap((unit) => (wanted[unit] === undefined ? [] : [{ unit, most: wanted[unit] }]));
  const [cut] = given;
  if (cut === undefined || given.length > 1) {
    return refuse(['cut'], `Expected exactly one of ${CUT_UNITS.join(', ')}, got ${given.length}`);
  }
  return cut;
}
