import type { EncoderLoad } from '../text-encoder.ts';

const NEWEST = 0.2;

/** Counters of an endpoint's encoder, and the expected wait from the speed of its latest requests. */
export class EndpointLoad {
  readonly #counts = { waitingTexts: 0, texts: 0, droppedTexts: 0, chunks: 0 };
  #msPerText = 0;
  #running = 0;

  get load(): EncoderLoad {
    const expectedWaitMs = (this.#counts.waitingTexts * this.#msPerText) / Math.max(1, this.#running);
    return { ...this.#counts, expectedWaitMs };
  }

  /** Counts a request of `texts` texts until `end` is called; a second call has no effect. */
  request(texts: number): { start(): void; end(how?: 'done' | 'divided'): void } {
    this.#counts.waitingTexts += texts;
    let startedAt: number | undefined;
    let hasEnded = false;
    return {
      start: () => {
        startedAt = performance.now();
        this.#counts.waitingTexts -= texts;
        this.#running++;
        this.#counts.chunks++;
      },
      end: (how = 'done') => {
        if (hasEnded) return;
        hasEnded = true;
        if (startedAt === undefined) {
          this.#counts.waitingTexts -= texts;
          this.#counts.droppedTexts += texts;
          return;
        }
        this.#running--;
        // The requests that it is divided into count its texts.
        if (how === 'divided') return;
        this.#counts.texts += texts;
        const ms = (performance.now() - startedAt) / texts;
        this.#msPerText = this.#msPerText === 0 ? ms : this.#msPerText * (1 - NEWEST) + ms * NEWEST;
      },
    };
  }
}
