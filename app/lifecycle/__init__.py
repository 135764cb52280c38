# SPDX-License-Identifier: Apache-2.0
"""The running companion as one program: its commands, its pauses, its one instance, its start and end."""
