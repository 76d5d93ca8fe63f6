export interface RequestSpan {
  /** `POST /retrieve`: the method and the route's pattern. */
  readonly name: string;
  /** The fields of the request, for W3C Trace Context: `traceparent` and `tracestate`. */
  readonly headers: Readonly<Record<string, unknown>>;
  /** Milliseconds since 1970, with a fraction. */
  readonly startedAt: number;
  readonly ms: number;
  readonly status: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** The parts of the request, in the order in which they began. */
  readonly stages: readonly { readonly name: string; readonly ms: number }[];
}

/** Takes requests for traces. Never throws and never waits: a trace that cannot be sent is lost. */
export interface RequestTracer {
  trace(request: RequestSpan): void;
  /** Sends what is left, for a few seconds at most. May be called twice. */
  close(): Promise<void>;
}
