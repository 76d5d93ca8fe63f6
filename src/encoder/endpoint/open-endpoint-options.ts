import type { ModelIdentity } from '../identity/model-identity.ts';
import type { ModelOverrides } from '../model/model-overrides.ts';
import type { EndpointClients } from './endpoint-clients.ts';
import type { EndpointOptions } from './endpoint-options.ts';

export interface OpenEndpointOptions extends EndpointOptions {
  readonly overrides?: ModelOverrides;
  /** The model of an index, whose prefixes and settings the encoder takes. */
  readonly recorded?: ModelIdentity;
  readonly onWarning?: (warning: string) => void;
  /** Clients that are shared with other encoders. Default: a client of its own. */
  readonly clients?: EndpointClients;
  /**
   * `performance.now()` from which on answers to other encoders of `clients` count, so that a server that starts embeds the probes once
   * for all its indexes. Default: now, so that none counts.
   */
  readonly answersSince?: number;
  /** Aborting ends the opening with CANCELLED. The open encoder does not use it. */
  readonly signal?: AbortSignal;
}
