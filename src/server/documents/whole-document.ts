import type { TimeSlice } from '../../base/time-slice.ts';
import { documentFields, titleForms } from '../../index/passages/document-fields.ts';
import type { CutText, FoundPassage, Models, Retriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { addTimings, NO_TIMINGS, type StageTimings } from '../../search/timings.ts';
import type { RecordedOpening } from '../recording/recorded-search.ts';
import { findPassages, type Lookup, lookupsOfDocument, titleKeys, urlKeys } from './document-lookup.ts';
import { joinPassages, orderedPassages } from './join-passages.ts';
import { idInUrl, passageName } from './passage-name.ts';

/** Longest text of a document, in UTF-16 units. It bounds the memory of a reply. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

export interface WholeDocument {
  /** The id of the document, or else the id, URL, title or row of its first passage. */
  readonly id: string;
  /** The column `url`, or `trawl://INDEX/ID`. */
  readonly url: string;
  readonly title: string;
  /** Without the title. */
  readonly text: string;
  /** Whether the text ends before the document does. */
  readonly isCut: boolean;
  /** Rows of the joined passages. */
  readonly rows: readonly number[];
  /** Their ids as JSON text. */
  readonly idsJson: readonly (string | undefined)[];
}

interface FoundDocuments<Found = WholeDocument> {
  readonly documents: readonly Found[];
  readonly timings: StageTimings;
}

interface Options {
  /** Most passages of a document. Of a longer document, the first ones in row order are joined. */
  readonly limit: number;
  readonly signal: AbortSignal;
  readonly slice: TimeSlice;
}

export async function documentsOfPassages(
  retriever: Retriever,
  passages: readonly FoundPassage[],
  { limit, signal, slice }: Options,
): Promise<FoundDocuments> {
  const lookups = passages.map(({ row, document }) => lookupsOfDocument(documentFields(document), row));
  const { found, timings } = await findPassages(retriever, lookups, limit, signal);
  const documents: WholeDocument[] = [];
  for (const each of found) {
    documents.push(joinedDocument(each, retriever.info, limit));
    if (slice.isOver) await slice.yield();
  }
  return { documents, timings };
}

/**
 * Documents by id or URL; undefined where no passage was found. An id names a document, or else a passage, and then gives its document. A
 * URL is compared as it is; if no passage has it, it may be the title in a wiki's URL, or a title.
 */
export async function documentsByName(
  retriever: Retriever,
  names: readonly ({ readonly id: string } | { readonly url: string })[],
  options: Options,
): Promise<FoundDocuments<WholeDocument | undefined>> {
  const lookups = names.map((name) => ('id' in name ? lookupsOfId(name.id) : lookupsOfUrl(name.url, retriever.info)));
  const first = await findPassages(retriever, lookups, 1, options.signal);
  const passages = first.found.flatMap(([passage]) => passage ?? []);
  const whole = await documentsOfPassages(retriever, passages, options);
  let next = 0;
  const documents = first.found.map(({ length }) => (length === 0 ? undefined : whole.documents[next++]));
  return { documents, timings: addTimings(first.timings, whole.timings) };
}

/** An id of `WholeDocument`. */
function lookupsOfId(id: string): readonly Lookup[] {
  const row = /^row (\d+)$/.exec(id)?.[1];
  return [
    { by: 'document', keys: [id] },
    { by: 'id', keys: [id] },
    { by: 'url', keys: [id] },
    { by: 'title', keys: titleForms(id) },
    ...(row === undefined ? [] : [{ by: 'row', keys: [row] } as const]),
  ];
}

function lookupsOfUrl(url: string, { index }: RetrieverInfo): readonly Lookup[] {
  const id = idInUrl(url, index);
  if (id !== url) return lookupsOfId(id);
  return [
    { by: 'url', keys: urlKeys(url) },
    { by: 'title', keys: titleKeys(url) },
  ];
}

/** @param found passages in row order, at least one. */
function joinedDocument(found: readonly FoundPassage[], { index }: RetrieverInfo, limit: number): WholeDocument {
  const passages = orderedPassages(found.map(({ row, document }) => ({ row, fields: documentFields(document) })));
  const { row, fields } = passages[0]!;
  const { id, title, url } = passageName(index, row, fields);
  const cut = cutCharacters(joinPassages(passages.map((each) => each.fields)), MAX_CHARACTERS);
  return {
    id: fields.document ?? id,
    url,
    title,
    text: cut.text,
    isCut: cut.isCut || found.length === limit,
    rows: passages.map((each) => each.row),
    idsJson: passages.map((each) => each.fields.idJson),
  };
}

export const CUT_UNITS = ['words', 'characters', 'tokens'] as const;

/** The most words, characters or tokens of a document. */
export interface DocumentCut {
  readonly unit: (typeof CUT_UNITS)[number];
  /** At least 1. */
  readonly most: number;
}

/**
 * The same documents with the beginnings of their texts.
 *
 * @throws TrawlError NOT_SUPPORTED for tokens, if the index has no tokenizer.
 */
export async function cutDocuments(
  retriever: Models,
  documents: readonly WholeDocument[],
  { unit, most }: DocumentCut,
  { signal, slice }: Pick<Options, 'signal' | 'slice'>,
): Promise<FoundDocuments> {
  if (unit === 'tokens') {
    const { texts, timings } = await retriever.cut({ texts: documents.map(({ text }) => text), tokens: most, signal });
    return { documents: documents.map((document, i) => withText(document, texts[i]!)), timings };
  }
  const cut: WholeDocument[] = [];
  for (const document of documents) {
    cut.push(withText(document, unit === 'words' ? cutWords(document.text, most) : cutCharacters(document.text, most)));
    if (slice.isOver) await slice.yield();
  }
  return { documents: cut, timings: NO_TIMINGS };
}

function withText(document: WholeDocument, { text, isCut }: CutText): WholeDocument {
  return { ...document, text, isCut: isCut || document.isCut };
}

/** The opening of passages by a name that a client gave. */
export function openingOf(opened: string, found: readonly FoundPassage[]): RecordedOpening {
  const passages = found.map(({ row, source, document }) => ({
    row: source?.row ?? row,
    index: source?.index,
    idJson: documentFields(document).idJson,
  }));
  return { opened, passages };
}

/** The opening of a document by a name that a client gave; undefined: nothing has that name. */
export function openingOfDocument(opened: string, document: WholeDocument | undefined): RecordedOpening {
  const { rows, idsJson } = document ?? { rows: [], idsJson: [] };
  return { opened, passages: rows.map((row, i) => ({ row, idJson: idsJson[i] })) };
}

/** The first `most` words of a text, in their spelling and spacing. A word is a run of characters without white space. */
export function cutWords(text: string, most: number): CutText {
  const word = /\S+/g;
  let end = 0;
  for (let count = 0; count < most; count++) {
    const match = word.exec(text);
    if (match === null) return { text, isCut: false };
    end = word.lastIndex;
  }
  return /\S/.test(text.slice(end)) ? { text: text.slice(0, end), isCut: true } : { text, isCut: false };
}

/** The first `most` UTF-16 units of a text, one fewer if they would end within a character. @internal */
export function cutCharacters(text: string, most: number): CutText {
  if (text.length <= most) return { text, isCut: false };
  const unit = text.charCodeAt(most - 1);
  const splits = unit >= 0xd800 && unit <= 0xdbff;
  return { text: text.slice(0, splits ? most - 1 : most), isCut: true };
}
