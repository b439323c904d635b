// SPDX-License-Identifier: Apache-2.0
// Which addresses are of the public network: what a URL of a stranger may lead to. Asked of the
// very address that is connected to, so that no name server can answer twice.
#pragma once

struct sockaddr;

namespace facet {

/// Whether an address may be connected to.
using AddressFilter = bool (*)(const sockaddr& address);

/// False for loopback, private, link-local, shared (RFC 6598), unique local, multicast, reserved
/// and documentation addresses, for those of cloud hosts' own services, for IPv6 addresses that
/// lead to any of them by IPv4 inside, and for families other than IPv4 and IPv6.
bool IsPublicAddress(const sockaddr& address);

}  // namespace facet
