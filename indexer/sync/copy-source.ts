import type { TransferPolicy } from '../../src/base/net/retries.ts';

export const SOURCE_RETRIES: TransferPolicy = {
  attempts: 6,
  firstWaitMs: 500,
  maxWaitMs: 20_000,
  maxRetryAfterMs: 300_000,
  code: 'SOURCE_UNREACHABLE',
  advice: 'What was copied is kept: run the same command again.',
};

/** An index that is copied, at one moment. Every read is of the same files, or fails with SOURCE_CHANGED. */
export interface CopySource {
  /** For messages; without keys. */
  readonly shown: string;
  /** Real path of the source if it is a folder. */
  readonly folder?: string;
  /** The text of a manifest. @throws TrawlError INDEX_NOT_FOUND, INDEX_FILE_MISSING. */
  readManifest(path: string, signal: AbortSignal): Promise<Buffer>;
  /** Size of a file, and a tag that changes with its bytes. */
  facts(path: string, signal: AbortSignal): Promise<FileFacts>;
  /**
   * The bytes of a file from an offset on.
   *
   * @throws TransientFailure if another attempt may succeed; TrawlError SOURCE_CHANGED.
   */
  read(path: string, offset: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

export interface FileFacts {
  readonly bytes: number;
  readonly tag: string;
}

/** Takes hold of the index that the source has now. */
export type OpenSource = (signal: AbortSignal) => Promise<CopySource>;
