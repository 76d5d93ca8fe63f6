import { Type } from 'typebox';
import { TimeSlice } from '../../base/time-slice.ts';
import { withContents } from '../../index/passages/contents.ts';
import { addTimings, NO_TIMINGS } from '../../search/timings.ts';
import { CUT_UNITS, cutDocuments, type DocumentCut } from '../documents/cut-documents.ts';
import { openingOf } from '../documents/openings.ts';
import { documentsOfPassages, type FoundDocuments, type WholeDocument } from '../documents/whole-document.ts';
import {
  MAX_SAME_ID,
  PassageIds,
  PassageRows,
  passagesNamed,
  refuseTooManyPassages,
} from '../native-search/named-passages.ts';
import { View, viewMember } from '../native-search/reply.ts';
import { defineDialect } from './dialect.ts';
import { Document, nullable } from './parts/common-fields.ts';
import { refuse } from './parts/questions.ts';
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
  client: null,
  plan({ ids, rows, wholeDocuments, cut: wanted, index }, limits) {
    const count = ids.length + rows.length;
    refuseTooManyPassages(count, limits);
    const cut = wanted === null ? null : documentCut(wanted);
    if (cut !== null && !wholeDocuments) refuse(['cut'], 'Has no effect without wholeDocuments');
    return {
      queries: count,
      k: 1,
      index,
      async run(retriever, signal) {
        const {
          passages,
          sameId,
          timings: findTimings,
        } = await passagesNamed(retriever, { ids, rows, limit: MAX_SAME_ID }, signal);
        const found = passages.filter((passage) => passage !== undefined);
        const most = Math.max(1, Math.min(limits.maxK, Math.floor(limits.maxHits / Math.max(1, found.length))));
        const options = { limit: most, signal, slice: new TimeSlice(signal) };
        const whole = wholeDocuments ? await documents() : { documents: undefined, timings: NO_TIMINGS };
        return {
          timings: addTimings(findTimings, whole.timings),
          search: null,
          openings: [...ids.map(String), ...rows.map((row) => `row ${row}`)].map((name, i) =>
            openingOf(name, passages[i] === undefined ? [] : [passages[i]]),
          ),
          truncated: 0,
          pieces: reply(whole.documents),
        };

        async function documents(): Promise<FoundDocuments> {
          const joined = await documentsOfPassages(retriever, found, options);
          if (cut === null) return joined;
          const short = await cutDocuments(retriever, joined.documents, cut, options);
          return { ...short, timings: addTimings(joined.timings, short.timings) };
        }

        function* reply(documents: readonly (WholeDocument | undefined)[] | undefined): Generator<string> {
          const { index: name, generation } = retriever.info;
          yield `{"index":${JSON.stringify({ name, generation })}${viewMember(retriever.info)},"passages":[`;
          let place = 0;
          yield* separated(passages, (passage) => {
            const further = sameId[place++]!;
            if (passage === undefined) return 'null';
            const others = further.length === 0 ? '' : `,"sameId":[${further.join(',')}]`;
            return `{"row":${passage.row},"document":${withContents(passage.document)}${others}}`;
          });
          if (documents !== undefined) {
            yield '],"documents":[';
            let next = 0;
            yield* separated(passages, (passage) =>
              passage === undefined ? 'null' : documentJson(documents[next++]!),
            );
          }
          yield ']}';
        }
      },
    };
  },
});

/** @throws RequestError unless exactly one unit is given. */
function documentCut(wanted: Readonly<Partial<Record<DocumentCut['unit'], number>>>): DocumentCut {
  const given = CUT_UNITS.flatMap((unit) => (wanted[unit] === undefined ? [] : [{ unit, most: wanted[unit] }]));
  const [cut] = given;
  if (cut === undefined || given.length > 1) {
    return refuse(['cut'], `Expected exactly one of ${CUT_UNITS.join(', ')}, got ${given.length}`);
  }
  return cut;
}

function documentJson({ id, url, title, text, isCut, rows }: WholeDocument): string {
  return JSON.stringify({ id, url, title, text, whole: !isCut, rows });
}
