import type { Static, TSchema } from 'typebox';
import type { Retriever } from '../../search/retriever.ts';
import { readRequest } from '../dialects/parts/read-request.ts';
import type { RecordedOpening, RecordedSearch } from '../recording/recorded-search.ts';
import type { RequestLimits } from '../server-config.ts';

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: TSchema;
  /** Schema of `structured`; undefined for a tool whose reply is text only. */
  readonly output?: TSchema;
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
  readonly limits: RequestLimits;
  /** Tokens of a snippet of BrowseComp-Plus's `search`; 0: the whole document. */
  readonly snippetTokens: number;
  onSearch(search: RecordedSearch): void;
  /** Called with each passage or page that is opened, also with one that is not found. */
  onOpen(opening: RecordedOpening): void;
}

/** Largest number of passages of a page that is fetched by URL or title, and of any list in the arguments. */
export const MAX_PASSAGES = 200;

export function defineTool<Input extends TSchema>({
  run,
  ...parts
}: Omit<Tool, 'input' | 'call'> & {
  readonly input: Input;
  run(retriever: Retriever, args: Static<Input>, options: ToolCallOptions): Promise<ToolReply>;
}): Tool {
  return {
    ...parts,
    call: (retriever, args, options) => {
      const most = { items: MAX_PASSAGES, characters: options.limits.maxQueryChars, what: 'arguments' };
      return run(retriever, readRequest(parts.input, args, most), options);
    },
  };
}
