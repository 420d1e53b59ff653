// A recording of the server as a panel wants it.

import { createServedSites } from "../served.js";
import { getBytes } from "./api.js";

/** Sites of a recording, as in ../sites.js. */
export function createSites({ recording, sites }) {
  return createServedSites(sites, (part, values) => {
    const query = new URLSearchParams(values).toString();
    return getBytes(`recordings/${recording}/${part}${query && `?${query}`}`);
  });
}
