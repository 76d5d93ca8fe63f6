import type { Static, TSchema } from 'typebox';
import type { Retriever } from '../../search/retriever.ts';
import { readRequest } from '../dialects/parts/read-request.ts';
import type { RecordedOpening } from '../recording/recorded-opening.ts';
import type { RecordedSearch } from '../recording/recorded-search.ts';
import type { RequestLimits } from '../server-config.ts';

/** A tool for assistants. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: TSchema;
  /** Schema of `structured`; null for a tool whose reply is text only. */
  readonly output: TSchema | null;
  /** @throws TrawlError; INVALID_REQUEST for arguments that do not match `input`. */
  call(retriever: Retriever, args: unknown, options: ToolCallOptions): Promise<ToolReply>;
}

export interface ToolReply {
  /** The text blocks of the reply. */
  readonly texts: readonly string[];
  readonly structured?: Record<string, unknown>;
}

export interface ToolCallOptions {
  readonly signal: AbortSignal;
  /** Defaults and limits of searches. */
  readonly limits: RequestLimits;
  /** Tokens of a snippet of BrowseComp-Plus's `search`; 0: the whole document. */
  readonly snippetTokens: number;
  /** Called once for each search. */
  onSearch(search: RecordedSearch): void;
  /** Called with each passage or page that is opened, also with one that is not found. */
  onOpen(opening: RecordedOpening): void;
}

/** Largest number of passages of a page that is fetched by URL or title, and of any list in the arguments. */
export const MAX_PASSAGES = 200;

interface ToolParts<Input extends TSchema> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Input;
  readonly output?: TSchema;
  run(retriever: Retriever, args: Static<Input>, options: ToolCallOptions): Promise<ToolReply>;
}

export function defineTool<Input extends TSchema>({ run, output = undefined, ...parts }: ToolParts<Input>): Tool {
  return {
    ...parts,
    output: output ?? null,
    call: (retriever, args, options) => {
      const most = { items: MAX_PASSAGES, characters: options.limits.maxQueryChars, what: 'arguments' };
      return run(retriever, readRequest(parts.input, args, most), options);
    },
  };
}
