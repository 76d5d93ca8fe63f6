import { type Static, type TSchema, Type } from 'typebox';
import { TrawlError } from '../../errors.ts';
import { type DocumentFields, documentFields } from '../../passages/document-fields.ts';
import type { FoundPassage, Retriever } from '../../retrieval/retriever.ts';
import { titleKeys, urlKeys } from '../dialects/asearcher-access.ts';
import { readRequest } from '../dialects/read-request.ts';
import { excerpt } from '../excerpt.ts';

/** A tool as an assistant sees it, and what it does. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: TSchema;
  readonly output: TSchema;
  /** Throws TrawlError; INVALID_REQUEST for arguments that do not fit `input`. */
  call(retriever: Retriever, args: unknown, options: ToolCallOptions): Promise<object>;
}

export interface ToolCallOptions {
  readonly signal: AbortSignal;
  /** Longest text of an argument, in UTF-16 units. */
  readonly maxChars: number;
}

/** Hits of a search that names no number: what assistants look through before they fetch. */
const DEFAULT_HITS = 10;
const MAX_HITS = 100;
/** Of a hit's text, around the words of the query; the whole passage is what `fetch` is for. */
const SNIPPET_CHARACTERS = 400;
/** Passages of one page, where a URL or a title is fetched. */
const MAX_PASSAGES = 200;

const Result = Type.Object({
  id: Type.String({ description: 'What fetch takes.' }),
  title: Type.String(),
  url: Type.String({ description: "The passage's own URL, else one that names index and passage." }),
  text: Type.String({ description: 'The part of the passage where the words of the query stand together.' }),
  score: Type.Number({ description: 'Larger is nearer.' }),
});

const Fetched = Type.Object({
  id: Type.String(),
  title: Type.String(),
  text: Type.String(),
  url: Type.String(),
  metadata: Type.Object({}, { additionalProperties: Type.String(), description: 'Index, row and text columns.' }),
});

/**
 * `search` and `fetch` with the names, arguments and results that OpenAI's connectors and deep research expect of an MCP
 * server (platform.openai.com/docs/mcp); `question` and `k` are our addition.
 */
export const TOOLS: readonly Tool[] = [
  defineTool({
    name: 'search',
    title: 'Search passages',
    description:
      'Finds the passages nearest in meaning to a query, best first, with their ids. Use fetch for the whole text of one. ' +
      'A short query naming what is looked for works better than a list of keywords.',
    input: Type.Object(
      {
        query: Type.String({ description: 'What is looked for.' }),
        question: Type.Optional(
          Type.String({ description: 'The question that the query is a step of, if there is one.' }),
        ),
        k: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: MAX_HITS,
            default: DEFAULT_HITS,
            description: `Passages, at most ${MAX_HITS}.`,
          }),
        ),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({ results: Type.Array(Result) }),
    async run(retriever, { query, question, k = DEFAULT_HITS }, signal) {
      if (k > MAX_HITS) throw new TrawlError('K_TOO_LARGE', `k is ${k}; at most ${MAX_HITS} passages are given.`);
      const input = question === undefined ? query : { question, query };
      const { outcomes } = await retriever.retrieve({ queries: [input], k, signal });
      const outcome = outcomes[0]!;
      if (!outcome.ok) throw outcome.error;
      const results = outcome.hits.map(({ row, score, document }) => {
        const fields = documentFields(document);
        const { id, title, url } = named(retriever, row, fields);
        return { id, title, url, text: excerpt(bodyOf(fields), query, SNIPPET_CHARACTERS).text, score };
      });
      return { results };
    },
  }),
  defineTool({
    name: 'fetch',
    title: 'Read a passage',
    description:
      'Gives the whole text of a passage by its id from search. A URL or a title of the corpus gives all its passages.',
    input: Type.Object(
      { id: Type.String({ description: 'An id from search; or a URL or a title.' }) },
      { additionalProperties: false },
    ),
    output: Fetched,
    async run(retriever, { id }, signal) {
      const passages = await passagesOf(retriever, id, signal);
      const [first] = passages;
      if (first === undefined) {
        const shown = JSON.stringify(id.slice(0, 100));
        throw new TrawlError('NOT_FOUND', `No passage has the id, URL or title ${shown}. Take an id from search.`);
      }
      const all = passages.map(({ document }) => documentFields(document));
      const { title, url } = named(retriever, first.row, all[0]!);
      const metadata = {
        ...textColumns(first.document),
        index: retriever.info.index,
        generation: retriever.info.generation,
        rows: passages.map(({ row }) => row).join(','),
      };
      return { id, title, text: all.map(bodyOf).join('\n'), url, metadata };
    },
  }),
];

interface ToolParts<Input extends TSchema> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Input;
  readonly output: TSchema;
  run(retriever: Retriever, args: Static<Input>, signal: AbortSignal): Promise<object>;
}

function defineTool<Input extends TSchema>({ run, ...parts }: ToolParts<Input>): Tool {
  return {
    ...parts,
    call: (retriever, args, { signal, maxChars }) =>
      run(
        retriever,
        readRequest(parts.input, args, { items: MAX_PASSAGES, characters: maxChars, what: 'arguments' }),
        signal,
      ),
  };
}

/** A passage without an id of its own is found again by its URL, else by its title, else by its row. */
function named(
  { info }: Retriever,
  row: number,
  { id, url, title }: DocumentFields,
): { id: string; title: string; url: string } {
  const handle = id ?? url ?? title ?? `row ${row}`;
  return {
    id: handle,
    title: title ?? handle,
    url: url ?? `trawl://${encodeURIComponent(info.index)}/${encodeURIComponent(handle)}`,
  };
}

function bodyOf({ text, contents }: DocumentFields): string {
  return text === '' ? contents : text;
}

/** The handle in a URL that `named` made, which assistants fetch too; any other text as it is. */
function handleIn(text: string, index: string): string {
  const start = `trawl://${encodeURIComponent(index)}/`;
  if (!text.startsWith(start)) return text;
  try {
    return decodeURIComponent(text.slice(start.length));
  } catch {
    return text;
  }
}

async function passagesOf(retriever: Retriever, asked: string, signal: AbortSignal): Promise<readonly FoundPassage[]> {
  const handle = handleIn(asked, retriever.info.index);
  for (const [by, keys] of [
    ['id', [handle]],
    ['url', urlKeys(handle)],
    ['title', titleKeys(handle)],
    ['row', /^row (\d+)$/.exec(handle)?.slice(1) ?? []],
  ] as const) {
    if (keys.length === 0) continue;
    try {
      const { found } = await retriever.find({ by, keys, limit: MAX_PASSAGES, signal });
      const passages = found.find((each) => each.length > 0);
      if (passages !== undefined) return passages;
    } catch (error) {
      // An index of the first format has the look-up by id alone.
      if (!(error instanceof TrawlError && error.code === 'NOT_SUPPORTED')) throw error;
    }
  }
  return [];
}

/** Columns of the corpus that are text, but for those that are told by name. */
function textColumns(documentJson: string): Record<string, string> {
  const row: unknown = JSON.parse(documentJson);
  if (typeof row !== 'object' || row === null) return {};
  const told = new Set(['id', '_id', 'title', 'text', 'contents', 'url']);
  const columns = Object.entries(row).filter(([name, value]) => typeof value === 'string' && !told.has(name));
  return Object.fromEntries(columns) as Record<string, string>;
}
