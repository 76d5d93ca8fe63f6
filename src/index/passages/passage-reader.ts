import { bug, serializeError } from '../../base/errors.ts';
import { CallThread } from '../../base/system/thread-calls.ts';
import type { PassageReply, PassageRequest, PassageShard } from './passage-protocol.ts';

/** For each message, exactly one of the two methods is called. */
interface ReplyHandler {
  onReply(reply: PassageReply): void;
  /** The thread died before it replied. */
  onDeath(error: Error): void;
}

/** A reader thread. It gets one message at a time and keeps the process alive only while it works on one. */
export class PassageReader {
  /** Resolves when the files are open. */
  readonly ready: Promise<void>;
  readonly #thread: CallThread<PassageRequest, PassageReply>;
  #handler: ReplyHandler | undefined;
  #state: 'opening' | 'ready' | 'closing' | 'ended' = 'opening';
  #busySince = 0;

  /** `onDied` is called when the thread ends on its own after it was ready. */
  constructor(shards: readonly PassageShard[], onDied: (error: Error) => void) {
    const options = { name: 'trawl-passages', workerData: shards };
    this.#thread = new CallThread(new URL('./passage-worker.js', import.meta.url), options, (error) => {
      const wasReady = this.#state === 'ready';
      this.#state = 'ended';
      this.#taken()?.onDeath(error);
      if (wasReady) onDied(error);
    });
    this.ready = this.#thread.opened().then(() => {
      if (this.#state === 'opening') this.#state = 'ready';
    });
  }

  get isIdle(): boolean {
    return this.#state === 'ready' && this.#handler === undefined;
  }

  /** Milliseconds since the current message was sent; 0 without one. */
  get busyMs(): number {
    return this.#handler === undefined ? 0 : performance.now() - this.#busySince;
  }

  ask(message: PassageRequest, handler: ReplyHandler): void {
    if (!this.isIdle) throw bug('a passage reader got a message while it was not idle');
    this.#handler = handler;
    this.#busySince = performance.now();
    this.#thread.ask(message).then(
      (reply) => this.#taken()?.onReply(reply),
      // After a death the handler is taken already.
      (error: unknown) => this.#taken()?.onReply({ type: 'failed', error: serializeError(error) }),
    );
  }

  /** Resolves when the thread has ended, after the message that it works on. */
  close(): Promise<void> {
    if (this.#state !== 'ended') this.#state = 'closing';
    return this.#thread.close();
  }

  #taken(): ReplyHandler | undefined {
    const handler = this.#handler;
    this.#handler = undefined;
    return handler;
  }
}
